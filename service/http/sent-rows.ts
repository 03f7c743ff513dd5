import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/**
 * Follows rows to the client. When reading them fails, the connection is aborted: there is no other way to report an
 * error once the answer has begun.
 *
 * @param ended Called once: when all were sent, when the client went away, or with what failed.
 */
export function followRows(
  context: Context,
  rows: ReadableStream<Uint8Array>,
  ended: (failure?: { readonly cause: unknown }) => void,
): ReadableStream<Uint8Array> {
  const reader = rows.getReader();
  let isOver = false;
  const end = (failure?: { readonly cause: unknown }) => {
    if (!isOver) ended(failure);
    isOver = true;
  };
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (isOver) return;
          if (!done) return controller.enqueue(value);
          end();
        } catch (cause) {
          if (isOver) return;
          end({ cause });
          (context.env as HttpBindings).outgoing.destroy();
        }
        // Of a stream that failed, the adapter would write the reason behind the rows and onto the console.
        controller.close();
      },
      cancel: async (reason) => {
        end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
