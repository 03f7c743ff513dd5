import { finished } from "node:stream/promises";
import { createMiddleware } from "hono/factory";
import type { AppContext, AppEnv } from "../context.ts";

/** The rest of a body that is read. A stream of rows arrives as slowly as it is computed. */
const limits = {
  json: { ms: 5_000, bytes: 64 * 1024 * 1024 },
  arrow: { ms: 10_000, bytes: 512 * 1024 * 1024 },
} as const;

/**
 * Discards the rest of a body that was not read, such as that of a refused request, before the response is sent. Most
 * clients send a whole body before they read the response: they lose it when the connection closes earlier, and Node's
 * client stops sending when the response arrives earlier.
 */
export function drainBody() {
  return createMiddleware<AppEnv>(async function drainBody(c, next) {
    await next();
    const { incoming, outgoing } = c.env;
    if (incoming === undefined || incoming.complete) return;
    const { bodyStream, request } = c.var;
    // Some clients send rows under another type; the handler of a validated request reads them.
    const isArrow =
      (bodyStream !== undefined && request !== undefined) ||
      c.req.header("content-type")?.startsWith("application/vnd.apache.arrow");
    const { ms, bytes } = isArrow ? limits.arrow : limits.json;
    const excess = new AbortController();
    const signal = AbortSignal.any([excess.signal, AbortSignal.timeout(ms)]);
    let left = bytes;
    if (bodyStream?.locked === false) bodyStream.cancel().catch(() => undefined);
    // A listener takes effect when another reader of the body stops; resume() would not.
    incoming.on("data", ({ length }: Buffer) => {
      left -= length;
      if (left < 0) excess.abort();
    });
    await finished(incoming, { signal }).catch(() => {
      outgoing?.once("finish", () => incoming.socket.destroySoon());
    });
  });
}

/** Opens the body as a stream of bytes, whose rest `drainBody` discards. */
export function openBody(c: AppContext): ReadableStream<Uint8Array> {
  const { incoming } = c.env;
  const source = incoming?.iterator({ destroyOnReturn: false }) ?? c.req.raw.body ?? [];
  const stream = ReadableStream.from<Uint8Array>(source);
  c.set("bodyStream", stream);
  return stream;
}
