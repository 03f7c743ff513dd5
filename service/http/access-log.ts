import { createMiddleware } from "hono/factory";
import { LRUCache } from "lru-cache";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { AppContext, AppEnv } from "./context.ts";

/** Safe in a header and in the log. */
const requestIdPattern = /^[\w=-]{1,128}$/;
const traceparentPattern = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Applies `header.x-request-id` and `header.traceparent` of the body's context. Headers of the request have precedence. */
export function applyContext(c: AppContext, context: unknown): void {
  if (typeof context !== "object") return;
  const given: Readonly<Record<string, unknown>> = { ...context };
  const requestId = matching(requestIdPattern, given["header.x-request-id"]);
  const hasOwn = c.req.header("x-request-id") === c.get("requestId");
  if (requestId !== undefined && !hasOwn) c.set("requestId", requestId);
  const traceparent = matching(traceparentPattern, given["header.traceparent"]);
  if (traceparent !== undefined && c.get("traceparent") === undefined) c.set("traceparent", traceparent);
}

function matching(pattern: RegExp, text: unknown): string | undefined {
  return typeof text === "string" && pattern.test(text) ? text : undefined;
}

export interface AccessLogDeps {
  readonly log: Log;
  readonly metrics: Metrics;
  /** The maximum number of refusals of each caller per minute that are logged. */
  readonly loggedRefusals: number;
}

/**
 * Identifies each request, logs each operation and records its duration after the response. The logged fields are listed
 * explicitly so that no credential reaches the log. Refusals are logged up to a rate for each caller; the metrics count
 * all of them. Pages (console, docs, health, metrics) are not logged.
 */
export function accessLog({ log, metrics, loggedRefusals }: AccessLogDeps) {
  const countOmitted = boundRefusals(loggedRefusals);
  return createMiddleware<AppEnv>(async function accessLog(c, next) {
    const start = performance.now();
    // The id is that of the caller, or else a random one. Responses contain it among their own headers.
    c.set("requestId", matching(requestIdPattern, c.req.header("x-request-id")) ?? crypto.randomUUID());
    const traceparent = matching(traceparentPattern, c.req.header("traceparent"));
    if (traceparent !== undefined) c.set("traceparent", traceparent);
    await next();
    const operation = c.get("operation");
    if (operation === undefined) return;

    const record = () => {
      const durationMs = performance.now() - start;
      const status = c.get("hasFailedRows") ? 500 : c.res.status;
      metrics.observeOperation(operation, status, durationMs);
      const refusal = c.get("refusal");
      const omitted = refusal === undefined ? 0 : countOmitted(refusal.caller);
      if (omitted === undefined) return;
      log.info({
        request_id: c.get("requestId"),
        traceparent: c.get("traceparent"),
        principal: c.get("principal")?.name,
        operation,
        path: c.req.path,
        status,
        caller: refusal?.caller,
        api_key_id: refusal?.apiKeyId,
        needed_role: refusal?.role,
        needed_on: refusal?.object,
        omitted_refusals: omitted === 0 ? undefined : omitted,
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

const windowMs = 60_000;
const callersMax = 10_000;

/**
 * Limits the logged refusals, so that no caller floods the log. Creates a function that reports whether to log a refusal
 * of a caller. It returns the number of refusals since the previous line of the caller that were not logged; undefined
 * for one that is not logged either.
 *
 * @param loggedMax The maximum number of logged refusals of each caller per minute.
 */
function boundRefusals(loggedMax: number): (caller: string) => number | undefined {
  const windows = new LRUCache<string, { endsAtMs: number; logged: number; omitted: number }>({ max: callersMax });
  return (caller) => {
    const now = performance.now();
    const window = windows.get(caller) ?? { endsAtMs: now + windowMs, logged: 0, omitted: 0 };
    windows.set(caller, window);
    if (now >= window.endsAtMs) Object.assign(window, { endsAtMs: now + windowMs, logged: 0 });
    if (window.logged >= loggedMax) {
      window.omitted += 1;
      return undefined;
    }
    window.logged += 1;
    const { omitted } = window;
    window.omitted = 0;
    return omitted;
  };
}
