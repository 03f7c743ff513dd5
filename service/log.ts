import { type Logger, pino } from "pino";

export type Log = Logger;

/**
 * The service's log: JSON lines on standard output. Credentials are never logged; the
 * redaction is for objects that a later change might hand to the log by mistake.
 */
export function createLog(level: string): Log {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ["*.authorization", '*["x-api-key"]', "*.auth_token", "*.api_key", "*.identity"],
  });
}
