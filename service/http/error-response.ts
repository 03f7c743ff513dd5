import { CatalogError } from "@tiltyard/protocol";
import type { Context } from "hono";
import type { Log } from "../log.ts";
import { incomingOf } from "./incoming.ts";
import { lingeringAnswer } from "./refused-body.ts";

/**
 * Answers a failure with the one error body. What is no CatalogError is a bug: the answer
 * tells a request id and nothing else, and the cause is in the log.
 */
export function respondWithError(context: Context, error: unknown, requestId: string, log: Log): Response {
  const known = explain(error, requestId, log);
  context.header("x-request-id", requestId);
  if (known.retryAfterSeconds !== undefined) context.header("retry-after", String(known.retryAfterSeconds));
  if (known.status === 401) context.header("www-authenticate", "Bearer");
  const answer = known.toResponse(context.req.path, requestId);
  const incoming = incomingOf(context);
  if (incoming.complete) return context.json(answer, known.status);
  const text = JSON.stringify(answer);
  const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) };
  return context.body(lingeringAnswer(text, incoming), known.status, headers);
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
