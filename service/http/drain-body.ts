import { finished } from "node:stream/promises";
import { createMiddleware } from "hono/factory";
import type { AppContext, AppEnv, OpenBody } from "./context.ts";

/** The limits of the discarded part of a body. A stream of rows arrives only as fast as its rows are computed. */
const limits = {
  json: { ms: 5_000, bytes: 64 * 1024 * 1024 },
  rows: { ms: 10_000, bytes: 512 * 1024 * 1024 },
} as const satisfies Record<OpenBody["content"], unknown>;

/**
 * Discards the unread part of a body, such as that of a rejected request, before the response is sent. Most clients
 * send a whole body before they read the response. They lose the response if the connection closes earlier, and Node's
 * client stops sending if the response arrives earlier.
 */
export function drainBody() {
  return createMiddleware<AppEnv>(async function drainBody(c, next) {
    await next();
    const { incoming, outgoing } = c.env;
    if (incoming === undefined || incoming.complete) return;
    const { content, stream } = c.get("body") ?? {};
    const isArrow = c.req.header("content-type")?.startsWith("application/vnd.apache.arrow");
    const { ms, bytes } = limits[isArrow ? "rows" : (content ?? "json")];
    const excess = new AbortController();
    const signal = AbortSignal.any([excess.signal, AbortSignal.timeout(ms)]);
    let left = bytes;
    if (stream?.locked === false) stream.cancel().catch(() => undefined);
    // A listener also works after another reader of the body has stopped; resume() would not.
    incoming.on("data", ({ length }: Buffer) => {
      left -= length;
      if (left < 0) excess.abort();
    });
    await finished(incoming, { signal }).catch(() => {
      outgoing?.once("finish", () => incoming.socket.destroySoon());
    });
  });
}

/** Opens the body as a stream of bytes. `drainBody` discards its unread part. */
export function openBody(c: AppContext, content: OpenBody["content"]): ReadableStream<Uint8Array> {
  const { incoming } = c.env;
  const source = incoming?.iterator({ destroyOnReturn: false }) ?? c.req.raw.body ?? [];
  const stream = ReadableStream.from<Uint8Array>(source);
  c.set("body", { content, stream });
  return stream;
}
