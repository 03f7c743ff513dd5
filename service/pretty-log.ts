import { styleText } from "node:util";
import { pino } from "pino";

const colors = { trace: "gray", debug: "gray", info: "green", warn: "yellow", error: "red", fatal: "red" } as const;

/** Formats a line of the log for a terminal: `12:00:01 INFO  request operation=ListTables status=200`. */
export function prettyLine(json: string): string {
  const { time, level: number, msg = "", err, ...fields } = JSON.parse(json);
  const level = (pino.levels.labels[number] as keyof typeof colors | undefined) ?? "info";
  const clock = new Date(time).toTimeString().slice(0, 8);
  const text = Object.entries(fields).map(([name, value]) => `${styleText("cyan", name)}=${shownValue(value)}`);
  const stack = err === undefined ? "" : `\n  ${String(err.stack ?? err.message).replaceAll("\n", "\n  ")}`;
  const label = styleText(colors[level], level.toUpperCase().padEnd(5));
  return `${[styleText("gray", clock), label, msg, ...text].join(" ")}${stack}\n`;
}

function shownValue(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
