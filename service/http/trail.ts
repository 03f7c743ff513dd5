import { type AnyContract, arrowTypeOf } from "@tiltyard/protocol";
import type { Context, Handler } from "hono";
import { afterAnswers } from "./after-answers.ts";
import { respondWithError } from "./error-response.ts";
import type { OperationParts } from "./operation.ts";
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
  /** Whether the body is an Arrow stream. */
  readonly takesRows: boolean;
  bodyBytes: number;
}

/** Names a request that its caller gave no name. */
export function requestIdIn(trail: Trail): string {
  trail.requestId ??= crypto.randomUUID();
  return trail.requestId;
}

/**
 * Makes one log line and one observation of each request, when its answer is made or its rows are sent.
 *
 * @param carryOut Makes the answer. An error that it throws is answered here.
 */
export function leaveTrail(
  contract: AnyContract,
  { loopWatch, metrics, log }: OperationParts,
  carryOut: (context: Context, trail: Trail) => Promise<Response>,
): Handler {
  const answersRows = arrowTypeOf(contract.response) !== undefined;
  return async (context) => {
    const start = performance.now();
    const trail: Trail = {
      operation: contract.operationId,
      requestId: requestIdOf(context.req.header("x-request-id")),
      traceparent: traceparentOf(context.req.header("traceparent")),
      principal: undefined,
      takesRows: isRows(contract, context),
      bodyBytes: 0,
    };
    loopWatch.begin(trail);
    let response: Response;
    try {
      response = await carryOut(context, trail);
    } catch (error) {
      response = respondWithError(context, error, requestIdIn(trail), log);
    }
    if (trail.takesRows) await takeRows(context.req.raw.body);
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
    if (!answersRows || !response.ok || response.body === null) {
      const durationMs = performance.now() - start;
      afterAnswers(() => observe(response.status, durationMs));
      return response;
    }
    const rows = followRows(context, response.body, (failure) => {
      if (failure !== undefined) log.error({ err: failure.cause, request_id: requestIdIn(trail) }, brokenOff);
      observe(failure === undefined ? response.status : statusOfFailure, performance.now() - start);
    });
    return new Response(rows, response);
  };
}

/** Whether the body of a request is an Arrow stream. */
function isRows({ content }: AnyContract, { req }: Context): boolean {
  if (content !== "either") return content === "arrow";
  return req.header("content-type")?.startsWith("application/vnd.apache.arrow") ?? false;
}
