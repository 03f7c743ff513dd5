import { CatalogError } from "@tiltyard/protocol";
import type { ErrorHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import type { Log } from "../../log.ts";
import type { AppContext, AppEnv } from "../context.ts";

/**
 * Renders every error in the error format of the protocol. An error other than CatalogError is a bug: its response
 * contains only the request id, and its cause is logged.
 */
export function errorHandler(log: Log): ErrorHandler<AppEnv> {
  return function errorHandler(error, c) {
    const known = toCatalogError(error, c);
    const { cause, message, status } = known;
    if (status >= 500 && cause !== undefined) log.error({ err: cause, request_id: c.get("requestId") }, message);
    return errorResponse(c, known);
  };
}

/** Renders an error without logging it. */
export function errorResponse(c: AppContext, error: CatalogError): Response {
  if (error.retryAfterSeconds !== undefined) c.header("retry-after", `${error.retryAfterSeconds}`);
  if (error.status === 401) c.header("www-authenticate", "Bearer");
  return c.json(error.toResponse(c.req.path, c.get("requestId"), c.get("operation")), error.status);
}

function toCatalogError(error: Error, c: AppContext): CatalogError {
  if (error instanceof CatalogError) return error;
  if (error instanceof HTTPException) return new CatalogError("InvalidInput", error.message, { cause: error });
  if (c.env.incoming?.readableAborted)
    return new CatalogError("InvalidInput", "the client closed the connection before its request was complete");
  return new CatalogError("Internal", "The service failed. Its log has the reason under the request id.", {
    cause: error,
  });
}
