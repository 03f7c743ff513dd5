import { CatalogError } from "@tiltyard/protocol";
import type { Context } from "hono";
import type { Log } from "../log.ts";

/**
 * Answers a failure with the one error body. What is no CatalogError is a bug: the answer
 * tells a request id and nothing else, and the cause is in the log.
 */
export function respondWithError(context: Context, error: unknown, requestId: string, log: Log): Response {
  const known = error instanceof CatalogError ? error : internal(error);
  if (known.cause !== undefined && known.status >= 500)
    log.error({ err: known.cause, request_id: requestId }, known.message);
  context.header("x-request-id", requestId);
  if (known.retryAfterSeconds !== undefined) context.header("retry-after", String(known.retryAfterSeconds));
  if (known.status === 401) context.header("www-authenticate", "Bearer");
  return context.json(known.toResponse(context.req.path, requestId), known.status);
}

function internal(cause: unknown): CatalogError {
  return new CatalogError("Internal", "The service failed. Its log says why, under the request id.", { cause });
}
