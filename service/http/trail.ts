import { type AnyContract, arrowTypeOf } from "@tiltyard/protocol";
import type { Context } from "hono";
import { respondWithError } from "./error-response.ts";
import type { OperationParts, Step } from "./operation.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";
import { followRows } from "./sent-rows.ts";

/** How much of a stream of rows is still taken once it is refused. */
const discardedBytesMax = 512 * 1024 * 1024;

/** How rows are counted and logged that broke off after the client was sent 200. */
const statusOfFailure = 500;
const brokenOff = "the rows of an answer could not be read to their end: the connection was broken off";

/** What is known of a request by the time that it is logged. */
export interface Trail {
  readonly operation: string;
  /** The caller's, from a header before the body's context; undefined while there is none. */
  requestId: string | undefined;
  traceparent: string | undefined;
  principal: string | undefined;
  bodyBytes: number;
  /** Whether another process carries the request out: that one logs and counts it. */
  isHandedOver: boolean;
}

/** Names a request that its caller gave no name. */
export function requestIdIn(trail: Trail): string {
  trail.requestId ??= crypto.randomUUID();
  return trail.requestId;
}

/** Makes one log line and one observation of each request, when its answer is made or its rows are sent. */
export function leaveTrail(contract: AnyContract, { loopWatch, metrics, log }: OperationParts): Step {
  const answersRows = arrowTypeOf(contract.response) !== undefined;
  return async (context, next) => {
    const start = performance.now();
    const trail: Trail = {
      operation: contract.operationId,
      requestId: requestIdOf(context.req.header("x-request-id")),
      traceparent: traceparentOf(context.req.header("traceparent")),
      principal: undefined,
      bodyBytes: 0,
      isHandedOver: false,
    };
    context.set("trail", trail);
    const takesRows = isRows(contract, context);
    context.set("takesRows", takesRows);
    loopWatch.begin(trail);
    try {
      await next();
    } catch (error) {
      context.res = respondWithError(context, error, requestIdIn(trail), log);
    }
    if (takesRows) await discard(context.req.raw.body);
    loopWatch.end(trail);
    if (trail.isHandedOver) return;

    const observe = (status: number) => {
      const durationMs = performance.now() - start;
      metrics.observeOperation(contract.operationId, status, durationMs);
      log.info({
        request_id: requestIdIn(trail),
        traceparent: trail.traceparent,
        principal: trail.principal,
        operation: contract.operationId,
        path: context.req.path,
        status,
        duration_ms: Math.round(durationMs * 1000) / 1000,
      });
    };
    const { res: response } = context;
    if (!answersRows || !response.ok || response.body === null) return observe(response.status);
    const rows = followRows(context, response.body, (failure) => {
      if (failure !== undefined) log.error({ err: failure.cause, request_id: requestIdIn(trail) }, brokenOff);
      observe(failure === undefined ? response.status : statusOfFailure);
    });
    // Hono would copy the headers of the response that is replaced.
    context.res = undefined;
    context.res = new Response(rows, response);
  };
}

/** Whether the body of a request is an Arrow stream. */
function isRows({ content }: AnyContract, { req }: Context): boolean {
  if (content !== "either") return content === "arrow";
  return req.header("content-type")?.startsWith("application/vnd.apache.arrow") ?? false;
}

/** A client that is still sending its rows reads no answer: most of what comes is taken, and thrown away. */
async function discard(rows: ReadableStream<Uint8Array> | null): Promise<void> {
  if (rows === null || rows.locked) return;
  let left = discardedBytesMax;
  try {
    for await (const { length } of rows) {
      left -= length;
      if (left < 0) break;
    }
  } catch {
    // The client has given up.
  }
}
