import type { IncomingMessage, ServerResponse } from "node:http";
import { finished } from "node:stream/promises";

/** How much of a body is still taken once its request is refused. */
const refusedBytesMax = 512 * 1024 * 1024;

interface LingerLimits {
  readonly bytesMax: number;
  readonly ms: number;
}

const lingerLimits: LingerLimits = { bytesMax: refusedBytesMax, ms: 5_000 };

/** Ends an answer when the body of its request has arrived, or is too long or too slow: then the connection ends, too. */
export async function endAfterBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limits?: LingerLimits,
): Promise<void> {
  closeUnlessComplete(incoming, outgoing);
  await takeRest(incoming, limits);
  outgoing.end();
}

/** Closes a connection behind an answer when the body of the request has not arrived: Node would read on without an end. */
export function closeUnlessComplete(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { socket } = incoming;
  outgoing.once("finish", () => {
    if (!incoming.complete) socket.destroySoon();
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
 * The same for rows, which may have been read in part. Their client may take its time, and reads no answer before it has
 * sent most of them.
 *
 * @param rows The stream that reads them, or the request of which none were read.
 */
export async function takeRows(rows: ReadableStream<Uint8Array> | IncomingMessage): Promise<void> {
  if (rows instanceof ReadableStream && rows.locked) return;
  // The answer is sent on the connection of what is left.
  const chunks: AsyncIterable<Uint8Array> =
    rows instanceof ReadableStream ? rows.values({ preventCancel: true }) : rows.iterator({ destroyOnReturn: false });
  let left = refusedBytesMax;
  try {
    for await (const { length } of chunks) {
      left -= length;
      if (left < 0) break;
    }
  } catch {
    // The client has given up.
  }
}
