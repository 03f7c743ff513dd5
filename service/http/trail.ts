import { type AnyContract, arrowTypeOf } from "@tiltyard/protocol";
import type { Context } from "hono";
import { afterAnswers } from "./after-answers.ts";
import { respondWithError } from "./error-response.ts";
import type { OperationParts, Step } from "./operation.ts";
import { takeRows } from "./refused-body.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";
import { followRows } from "./sent-rows.ts";

/** How rows are counted and logged that were interrupted after the client received 200. */
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
    if (takesRows) await takeRows(context.req.raw.body);
    loopWatch.end(trail);

    const observe = (status: number, durationMs: number) => {
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
    if (!answersRows || !response.ok || response.body === null) {
      const durationMs = performance.now() - start;
      return afterAnswers(() => observe(response.status, durationMs));
    }
    const rows = followRows(context, response.body, (failure) => {
      if (failure !== undefined) log.error({ err: failure.cause, request_id: requestIdIn(trail) }, brokenOff);
      observe(failure === undefined ? response.status : statusOfFailure, performance.now() - start);
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
