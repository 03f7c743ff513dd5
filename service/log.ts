import type { Readable } from "node:stream";
import { codeOf } from "@tiltyard/protocol";
import { type Logger, pino } from "pino";
import sonicBoom from "sonic-boom";

export type Log = Logger;

/** A log to which other processes contribute their lines. */
export interface LogOutput {
  readonly log: Log;
  /** Passes on the whole lines of what another process writes. What it began when it ended is no line. */
  relay(from: Readable): void;
}

/** Lines are written together, once they have this many bytes, or after a while. */
const heldBytes = 32 * 1024;
const writtenEveryMs = 500;
/** At most this much is written at once. A busy process gets to write once in hundreds of requests. */
const writtenBytesMax = 1024 * 1024;
/** At most this much waits for standard output to take it; what comes then is dropped. */
const waitingBytesMax = 16 * 1024 * 1024;
const lineEnd = "\n".charCodeAt(0);

const finishings = new Set<() => void>();
process.once("exit", () => {
  for (const finish of finishings)
    try {
      finish();
    } catch {
      // There is no other place to tell it.
    }
});

/**
 * The service's log: JSON lines on standard output. What is logged of a request is named
 * field by field, so that no credential gets into it. The service never waits for the
 * reader: what is too much is dropped, and a line says how much when there is room again. Nor
 * does it end when standard output is a file on a full disk: then there is no log.
 */
export function createLog(level: string): Log {
  return openLogOutput(level).log;
}

/** As `createLog`. */
export function openLogOutput(level: string): LogOutput {
  let dropped = 0;
  const destination = new sonicBoom.SonicBoom({
    dest: 1,
    sync: false,
    // Standard output may take a part of what is written: of text that could be half a character.
    contentMode: "buffer",
    minLength: heldBytes,
    maxWrite: writtenBytesMax,
    maxLength: waitingBytesMax,
  });
  let bytesHeld = 0;
  let isClosed = false;
  let isFlushPlanned = false;
  const flushSoon = () => {
    if (isFlushPlanned) return;
    isFlushPlanned = true;
    setTimeout(() => {
      isFlushPlanned = false;
      passOn();
      // The destination's own periodic flush also writes when there is nothing to write.
      if (bytesHeld === 0 || isClosed) return;
      destination.flush();
      // It flushes nothing while it is writing.
      flushSoon();
    }, writtenEveryMs).unref();
  };
  const write = (lines: Buffer) => {
    if (isClosed) return;
    bytesHeld += lines.length;
    // What takes buffers is typed as if it took text.
    destination.write(lines as unknown as string);
    flushSoon();
  };
  /** The lines of this turn of the event loop, which become bytes together. */
  let ofTurn = "";
  const passOn = () => {
    const text = ofTurn;
    ofTurn = "";
    if (text !== "") write(Buffer.from(text));
  };
  destination.on("write", (bytes: number) => {
    bytesHeld -= bytes;
  });
  destination.on("error", (error: unknown) => {
    // A pipe gets no other reader. A full disk may have room again.
    isClosed ||= codeOf(error) === "EPIPE";
  });
  finishings.add(() => {
    passOn();
    destination.flushSync();
  });

  const lines = {
    write: (line: string) => {
      if (ofTurn === "") setImmediate(passOn);
      ofTurn += line;
      if (ofTurn.length > heldBytes) passOn();
      flushSoon();
    },
    flush: (done: () => void) => {
      passOn();
      destination.flush(done);
    },
  };
  const log = pino({ level, base: null, timestamp: isoTime }, lines);

  destination.on("drop", (refused: Buffer) => {
    bytesHeld -= refused.length;
    for (const byte of refused) if (byte === lineEnd) dropped += 1;
  });
  destination.on("drain", () => {
    if (dropped === 0) return;
    log.warn({ lines: dropped }, "lines of this log were dropped: standard output was not read fast enough");
    dropped = 0;
  });
  return {
    log,
    relay: (from) => {
      let begun: Buffer = Buffer.alloc(0);
      from.on("data", (chunk: Buffer) => {
        const end = chunk.lastIndexOf(lineEnd) + 1;
        if (end > 0) write(Buffer.concat([begun, chunk.subarray(0, end)]));
        begun = end > 0 ? chunk.subarray(end) : Buffer.concat([begun, chunk]);
      });
    },
  };
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
