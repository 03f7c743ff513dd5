import { styleText } from "node:util";
import { type Logger, pino } from "pino";
import sonicBoom from "sonic-boom";

export type Log = Logger;

const bufferedBytesMin = 4 * 1024;
const flushEveryMs = 500;
/** The maximum size of buffered lines. Lines beyond it are dropped while standard output does not accept them. */
const waitingBytesMax = 16 * 1024 * 1024;

/** The maximum time that an exit waits for a reader of the log that accepts nothing. */
const exitWaitMs = 1_000;

const destinations = new Set<sonicBoom.SonicBoom>();
let exitDeadline = Number.POSITIVE_INFINITY;
process.once("exit", () => {
  exitDeadline = performance.now() + exitWaitMs;
  for (const destination of destinations)
    try {
      destination.flushSync();
    } catch {
      // The buffered lines are lost if the disk is full, the pipe is closed or its reader is stuck.
    }
});

/**
 * Creates the log of the service on standard output: lines for people on a terminal, JSON lines elsewhere. It writes
 * asynchronously: the service never waits for the reader of its log, and neither a full disk nor a closed pipe stops it.
 * The destination is a newer version of pino's, because the one that pino 10 bundles never returns from a flush to a full
 * disk.
 */
export function createLog(level: string): Log {
  const destination = new sonicBoom.SonicBoom({
    dest: 1,
    sync: false,
    minLength: bufferedBytesMin,
    periodicFlush: flushEveryMs,
    maxLength: waitingBytesMax,
    // A flush at the exit would repeat a write to a full pipe forever.
    retryEAGAIN: () => performance.now() < exitDeadline,
  });
  destinations.add(destination);
  let dropped = 0;
  destination.on("drop", () => {
    dropped += 1;
  });
  destination.on("drain", () => {
    if (dropped > 0) log.warn({ lines: dropped }, "log lines were dropped: standard output was not read fast enough");
    dropped = 0;
  });
  destination.on("error", () => undefined);
  const stream = process.stdout.isTTY
    ? {
        write: (line: string) => void destination.write(prettyLine(line)),
        flush: (done: () => void) => destination.flush(done),
      }
    : destination;
  const log = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream);
  return log;
}

export function flushLog(log: Log): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}

const colors = { trace: "gray", debug: "gray", info: "green", warn: "yellow", error: "red", fatal: "red" } as const;

/** Formats a line of the log for a terminal: `12:00:01 INFO  request operation=ListTables status=200`. */
function prettyLine(json: string): string {
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
