import type { IncomingMessage } from "node:http";
import { finished } from "node:stream/promises";

/** How much of a body is still taken once its request is refused. */
const refusedBytesMax = 512 * 1024 * 1024;

interface LingerLimits {
  readonly bytesMax: number;
  readonly ms: number;
}

const lingerLimits: LingerLimits = { bytesMax: refusedBytesMax, ms: 5_000 };

/**
 * The answer to a request whose body is still coming. It is sent at once, and ends when the body has arrived, or is too
 * long or too slow. A connection that is closed before is reset, and a client that reads last would lose the answer.
 */
export function lingeringAnswer(
  text: string,
  incoming: IncomingMessage,
  limits?: LingerLimits,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from(text)),
    pull: async (controller) => {
      await takeRest(incoming, limits);
      controller.close();
    },
  });
}

/** Reads what is still to come of a request and throws it away, within the limits. */
export async function takeRest(
  incoming: IncomingMessage,
  { bytesMax, ms }: LingerLimits = lingerLimits,
): Promise<void> {
  if (incoming.complete) return;
  const enough = new AbortController();
  const timer = setTimeout(() => enough.abort(), ms).unref();
  let bytes = 0;
  incoming.on("data", ({ length }: Buffer) => {
    bytes += length;
    if (bytes > bytesMax) enough.abort();
  });
  incoming.resume();
  // A client that goes away needs no answer.
  await finished(incoming, { signal: enough.signal }).catch(() => {});
  clearTimeout(timer);
}

/**
 * The same for rows, which may have been read in part: that is only seen in the stream that the adapter made of them. Their
 * client may take its time, and reads no answer before it has sent most of them.
 */
export async function takeRows(rows: ReadableStream<Uint8Array> | null): Promise<void> {
  if (rows === null || rows.locked) return;
  let left = refusedBytesMax;
  try {
    for await (const { length } of rows) {
      left -= length;
      if (left < 0) break;
    }
  } catch {
    // The client has given up.
  }
}
