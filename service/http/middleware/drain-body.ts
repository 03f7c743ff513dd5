import { finished } from "node:stream/promises";
import { createMiddleware } from "hono/factory";
import type { AppContext, AppEnv } from "../context.ts";

/** How long the rest of a refused body may take to arrive. */
const drainMs = 10_000;

/**
 * Discards the rest of a body that was not read, such as that of a refused request. Most clients send a whole body before
 * they read the response, and lose it when the connection closes earlier. A response that closes the connection waits
 * for the body; any other is sent at once.
 */
export function drainBody() {
  return createMiddleware<AppEnv>(async function drainBody(c, next) {
    await next();
    const { incoming, outgoing } = c.env;
    if (incoming === undefined || incoming.complete) return;
    const drained = finished(incoming.resume(), { signal: AbortSignal.timeout(drainMs) }).catch(() => {
      outgoing?.once("finish", () => incoming.socket.destroySoon());
      if (outgoing?.writableFinished) incoming.socket.destroySoon();
    });
    if (!outgoing?.shouldKeepAlive) await drained;
  });
}

/** Returns the body as a stream of bytes that `drainBody` can discard after it is cancelled. */
export function bodyStream(c: AppContext): ReadableStream<Uint8Array> {
  const { incoming } = c.env;
  const source = incoming?.iterator({ destroyOnReturn: false }) ?? c.req.raw.body ?? [];
  return ReadableStream.from<Uint8Array>(source);
}
