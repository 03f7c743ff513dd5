import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../context.ts";
import { validTraceparent } from "./access-log.ts";

/** The format that Hono's `requestId` accepts, which is safe in a header and in the log. */
const requestIdPattern = /^[\w=-]{1,128}$/;

/** Applies `header.x-request-id` and `header.traceparent` of the body's context. Headers of the request have precedence. */
export function contextHeaders() {
  return createMiddleware<AppEnv>(async function contextHeaders(c, next) {
    const context = c.get("request").context as Readonly<Record<string, string>> | undefined;
    const requestId = context?.["header.x-request-id"];
    const hasOwn = c.req.header("x-request-id") === c.get("requestId");
    if (!hasOwn && requestId !== undefined && requestIdPattern.test(requestId)) {
      c.set("requestId", requestId);
      c.header("x-request-id", requestId);
    }
    const traceparent = validTraceparent(context?.["header.traceparent"]);
    if (traceparent !== undefined && c.get("traceparent") === undefined) c.set("traceparent", traceparent);
    await next();
  });
}
