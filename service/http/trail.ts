import type { AnyContract } from "@tiltyard/protocol";
import { afterAnswers } from "./after-answers.ts";
import { type Answer, errorAnswer, send } from "./answer.ts";
import { type Exchange, headerOf, type Serve } from "./exchange.ts";
import type { OperationParts } from "./operation.ts";
import { closeUnlessComplete, takeRows } from "./refused-body.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";
import { sendRows } from "./sent-rows.ts";

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
  /** That stream, once it is read. */
  rows: ReadableStream<Uint8Array> | undefined;
  bodyBytes: number;
}

/** Rows as an answer: they are sent as they are made. */
export interface AnswerOfRows extends Omit<Answer, "body"> {
  readonly rows: ReadableStream<Uint8Array>;
}

/** Names a request that its caller gave no name. */
export function requestIdIn(trail: Trail): string {
  trail.requestId ??= crypto.randomUUID();
  return trail.requestId;
}

/**
 * Answers requests, and makes one log line and one observation of each, when its answer is sent or its rows are.
 *
 * @param carryOut Makes the answer. An error that it throws is answered here.
 */
export function leaveTrail(
  contract: AnyContract,
  { loopWatch, metrics, log }: OperationParts,
  carryOut: (exchange: Exchange, trail: Trail) => Promise<Answer | AnswerOfRows>,
): Serve {
  const { operationId } = contract;
  return async (exchange) => {
    const start = performance.now();
    const { incoming, outgoing, path } = exchange;
    const trail: Trail = {
      operation: operationId,
      requestId: requestIdOf(headerOf(exchange, "x-request-id")),
      traceparent: traceparentOf(headerOf(exchange, "traceparent")),
      principal: undefined,
      takesRows: isRows(contract, exchange),
      rows: undefined,
      bodyBytes: 0,
    };
    loopWatch.begin(trail);
    let answer: Answer | AnswerOfRows;
    try {
      answer = await carryOut(exchange, trail);
    } catch (error) {
      answer = errorAnswer(error, path, requestIdIn(trail), log);
    }
    if (trail.takesRows) {
      closeUnlessComplete(incoming, outgoing);
      await takeRows(trail.rows ?? incoming);
    }
    loopWatch.end(trail);

    const observe = (status: number, durationMs: number) => {
      metrics.observeOperation(operationId, status, durationMs);
      log.info({
        request_id: requestIdIn(trail),
        traceparent: trail.traceparent,
        principal: trail.principal,
        operation: operationId,
        path,
        status,
        duration_ms: Math.round(durationMs * 1000) / 1000,
      });
    };
    const { status, headers } = answer;
    if ("rows" in answer) {
      outgoing.writeHead(status, headers);
      const failure = await sendRows(answer.rows, outgoing);
      if (failure !== undefined) log.error({ err: failure.cause, request_id: requestIdIn(trail) }, brokenOff);
      observe(failure === undefined ? status : statusOfFailure, performance.now() - start);
      return;
    }
    const durationMs = performance.now() - start;
    afterAnswers(() => observe(status, durationMs));
    send(exchange, answer);
  };
}

/** Whether the body of a request is an Arrow stream. */
function isRows({ content }: AnyContract, exchange: Exchange): boolean {
  if (content !== "either") return content === "arrow";
  return headerOf(exchange, "content-type")?.startsWith("application/vnd.apache.arrow") ?? false;
}
