import { type Logger, pino } from "pino";

export type Log = Logger;

/** Lines are written together once there are this many bytes of them, or when the next flush comes. */
const bufferBytes = 4096;
const flushEveryMs = 500;

/**
 * The service's log: JSON lines on standard output. What is logged of a request is named
 * field by field, so that no credential gets into it.
 */
export function createLog(level: string): Log {
  const destination = pino.destination({ dest: 1, sync: false, minLength: bufferBytes });
  if (level !== "silent") setInterval(() => destination.flush(), flushEveryMs).unref();
  return pino({ level, base: null, timestamp: isoTime }, destination);
}

let [writtenMillis, written] = [0, ""];

/** As pino's own `isoTime`; all lines of a millisecond share one text. */
function isoTime(): string {
  const millis = Date.now();
  if (millis !== writtenMillis) [writtenMillis, written] = [millis, `,"time":"${new Date(millis).toISOString()}"`];
  return written;
}

/** Writes out what the log still holds; for the end of the process. */
export function flushLog(log: Log): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}
