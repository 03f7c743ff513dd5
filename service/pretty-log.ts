import { styleText } from "node:util";

const colors = { trace: "gray", debug: "gray", info: "green", warn: "yellow", error: "red", fatal: "red" } as const;
const levels: Readonly<Record<number, keyof typeof colors>> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** Formats a line of the log for a terminal: `12:00:01 INFO  request operation=ListTables status=200`. */
export function prettyLine(json: string): string {
  const { time, level: number, msg = "", err, ...fields } = JSON.parse(json);
  const level = levels[number] ?? "info";
  const clock = new Date(time).toTimeString().slice(0, 8);
  const text = Object.entries(fields).map(([name, value]) => `${styleText("cyan", name)}=${shownValue(value)}`);
  const stack = err === undefined ? "" : `\n  ${String(err.stack ?? err.message).replaceAll("\n", "\n  ")}`;
  const label = styleText(colors[level], level.toUpperCase().padEnd(5));
  return `${[styleText("gray", clock), label, msg, ...text].join(" ")}${stack}\n`;
}

function shownValue(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
