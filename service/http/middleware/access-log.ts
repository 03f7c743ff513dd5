import { createMiddleware } from "hono/factory";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import type { AppEnv } from "../context.ts";

const traceparentPattern = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns a valid W3C trace context; undefined for any other text. */
export function validTraceparent(text: string | undefined): string | undefined {
  return text !== undefined && traceparentPattern.test(text) ? text : undefined;
}

/**
 * Logs each operation and records its duration after the response. The logged fields are listed explicitly so that no
 * credential reaches the log. Pages (console, docs, health, metrics) are not logged.
 */
export function accessLog({ log, metrics }: { readonly log: Log; readonly metrics: Metrics }) {
  return createMiddleware<AppEnv>(async function accessLog(c, next) {
    const start = performance.now();
    const traceparent = validTraceparent(c.req.header("traceparent"));
    if (traceparent !== undefined) c.set("traceparent", traceparent);
    await next();
    const operation = c.get("operation");
    if (operation === undefined) return;

    const record = () => {
      const durationMs = performance.now() - start;
      const status = c.get("hasFailedRows") ? 500 : c.res.status;
      metrics.observeOperation(operation, status, durationMs);
      log.info({
        request_id: c.get("requestId"),
        traceparent: c.get("traceparent"),
        principal: c.get("principal")?.name,
        operation,
        path: c.req.path,
        status,
        ignored_fields: c.get("ignoredFields"),
        request_bytes: Number(c.req.header("content-length") ?? 0),
        duration_ms: Math.round(durationMs * 1000) / 1000,
      });
    };
    const { outgoing } = c.env;
    if (outgoing === undefined || outgoing.closed) record();
    else outgoing.once("close", record);
  });
}
