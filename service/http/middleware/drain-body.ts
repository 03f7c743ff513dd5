import { finished } from "node:stream/promises";
import { createMiddleware } from "hono/factory";
import type { AppContext, AppEnv } from "../context.ts";

/** The limits of the discarded part of a body. A stream of rows arrives only as fast as its rows are computed. */
const limits = {
  json: { ms: 5_000, bytes: 64 * 1024 * 1024 },
  arrow: { ms: 10_000, bytes: 512 * 1024 * 1024 },
} as const;

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
    const [bodyStream, request] = [c.get("bodyStream"), c.get("request")];
    // Some clients send rows under a different content type; the handler of a validated request reads them.
    const isArrow =
      (bodyStream !== undefined && request !== undefined) ||
      c.req.header("content-type")?.startsWith("application/vnd.apache.arrow");
    const { ms, bytes } = isArrow ? limits.arrow : limits.json;
    const excess = new AbortController();
    const signal = AbortSignal.any([excess.signal, AbortSignal.timeout(ms)]);
    let left = bytes;
    if (bodyStream?.locked === false) bodyStream.cancel().catch(() => undefined);
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
export function openBody(c: AppContext): ReadableStream<Uint8Array> {
  const { incoming } = c.env;
  const source = incoming?.iterator({ destroyOnReturn: false }) ?? c.req.raw.body ?? [];
  const stream = ReadableStream.from<Uint8Array>(source);
  c.set("bodyStream", stream);
  return stream;
}
