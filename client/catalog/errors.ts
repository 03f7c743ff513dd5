import { ErrorResponse } from "@tiltyard/protocol";

/** An error response of the catalog. */
export class CatalogRequestError extends Error {
  override readonly name = "CatalogRequestError";
  readonly operation: string;
  /** The HTTP status. */
  readonly status: number;
  /** The error code of the protocol; undefined for a response that is not the catalog's. */
  readonly code: number | undefined;
  /** The id of the request in the catalog's log. */
  readonly requestId: string | undefined;
  /** The delay that the catalog requests before a retry. */
  readonly retryAfterSeconds: number | undefined;

  constructor(operation: string, response: Response, body: string) {
    const parsed = ErrorResponse.partial().safeParse(parseJson(body));
    const { detail, error, code, request_id } = parsed.data ?? {};
    super(`${operation}: ${detail ?? error ?? `HTTP ${response.status}`}`);
    this.operation = operation;
    this.status = response.status;
    this.code = code;
    this.requestId = request_id ?? response.headers.get("x-request-id") ?? undefined;
    const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
    this.retryAfterSeconds = Number.isFinite(retryAfter) ? retryAfter : undefined;
  }
}

/** The lack of a response: the catalog could not be reached, or the timeout expired. */
export class CatalogConnectionError extends Error {
  override readonly name = "CatalogConnectionError";

  constructor(operation: string, url: string, cause: unknown) {
    const reason =
      cause instanceof Error ? ((cause.cause as Error | undefined)?.message ?? cause.message) : String(cause);
    super(`${operation}: no answer from ${URL.parse(url)?.origin ?? url}: ${reason}`, { cause });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
