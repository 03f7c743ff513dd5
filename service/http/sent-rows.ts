import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";

/**
 * Sends rows. When reading them fails, the connection is aborted: there is no other way to report an error once the answer
 * has begun.
 *
 * @returns When all were sent, when the client went away, or with what failed.
 */
export async function sendRows(
  rows: ReadableStream<Uint8Array>,
  outgoing: ServerResponse,
): Promise<{ readonly cause: unknown } | undefined> {
  const reader = rows.getReader();
  // A client that goes away ends the query, too; it may have gone before there were rows.
  const cancel = () => reader.cancel().catch(() => undefined);
  if (outgoing.destroyed) {
    await cancel();
    return undefined;
  }
  outgoing.once("close", cancel);
  let failure: { readonly cause: unknown } | undefined;
  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
    } catch (cause) {
      failure = { cause };
      throw cause;
    }
  }
  outgoing.flushHeaders();
  await pipeline(read, outgoing).catch(() => undefined);
  return failure;
}
