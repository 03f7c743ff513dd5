import type { OutgoingHttpHeaders } from "node:http";
import { CatalogError } from "@tiltyard/protocol";
import type { Log } from "../log.ts";
import { type Exchange, headerOf, type Serve } from "./exchange.ts";
import { endAfterBody } from "./refused-body.ts";
import { requestIdOf } from "./request-id.ts";

/** An answer that is whole. */
export interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  /** Empty when absent. */
  readonly body?: string;
  /** Whether the request's body may still be coming; false when absent. */
  readonly isEarly?: boolean;
}

export function jsonAnswer(status: number, json: string, headers: OutgoingHttpHeaders): Answer {
  return { status, headers: { "content-type": "application/json", ...headers }, body: json };
}

/**
 * Sends an answer. One to a request whose body is still coming is sent at once, and ends when the body has arrived, or is
 * too long or too slow: a connection that is closed before is reset, and a client that reads last would lose the answer.
 */
export function send({ incoming, outgoing, turn }: Exchange, { status, headers, body = "", isEarly }: Answer): void {
  // A response without content says so by its status.
  const length = status === 204 ? {} : { "content-length": Buffer.byteLength(body) };
  outgoing.writeHead(status, { ...headers, ...length });
  if (isEarly && !incoming.complete) {
    outgoing.write(body);
    void endAfterBody(incoming, outgoing);
  } else if (turn === undefined) outgoing.end(body);
  else turn.send(() => outgoing.end(body));
}

/**
 * The answer to a failure: the one error body. What is no CatalogError is a bug: the answer tells a request id and nothing
 * else, and the cause is in the log.
 */
export function errorAnswer(error: unknown, path: string, requestId: string, log: Log): Answer {
  const known = explain(error, requestId, log);
  const headers = {
    "x-request-id": requestId,
    ...(known.retryAfterSeconds !== undefined && { "retry-after": String(known.retryAfterSeconds) }),
    ...(known.status === 401 && { "www-authenticate": "Bearer" }),
  };
  return { ...jsonAnswer(known.status, JSON.stringify(known.toResponse(path, requestId)), headers), isEarly: true };
}

/** Answers what `serve` throws. Where an answer has begun, the connection is aborted. */
export function answeringErrors(serve: Serve, log: Log): Serve {
  return async (exchange) => {
    try {
      await serve(exchange);
    } catch (error) {
      const answer = errorAnswer(error, exchange.path, idOf(exchange), log);
      if (exchange.outgoing.headersSent) exchange.outgoing.destroy();
      else send(exchange, answer);
    }
  };
}

/** The id of a request: its caller's, or a new one. */
export function idOf(exchange: Exchange): string {
  return requestIdOf(headerOf(exchange, "x-request-id")) ?? crypto.randomUUID();
}

/** The answer to a failure. Its cause goes to the log. */
export function explain(error: unknown, requestId: string, log: Log): CatalogError {
  const known = error instanceof CatalogError ? error : internal(error);
  if (known.cause !== undefined && known.status >= 500)
    log.error({ err: known.cause, request_id: requestId }, known.message);
  return known;
}

function internal(cause: unknown): CatalogError {
  return new CatalogError("Internal", "The service failed. Its log says why, under the request id.", { cause });
}
