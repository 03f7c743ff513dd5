import { ErrorResponse, isTransientStatus, jsonOrUndefined } from "@tiltyard/protocol";

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
    const parsed = ErrorResponse.partial().safeParse(jsonOrUndefined(body));
    const { detail, error, code, request_id } = parsed.data ?? {};
    super(`${operation}: ${detail ?? error ?? noCatalog(response.url, summaryOf(response))}`);
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
      cause instanceof Error ? ((cause.cause as Error | undefined)?.message ?? cause.message).trim() : String(cause);
    super(`${operation}: ${noCatalog(url, reason)}`, { cause });
  }
}

/** A successful response that is not one of the operation, such as the page of a login in front of the catalog. */
export class CatalogResponseError extends Error {
  override readonly name = "CatalogResponseError";

  constructor(operation: string, url: string, problem: string) {
    super(
      `${operation}: ${noCatalog(url, problem)}. Check the URL, and that this client is not older than the catalog`,
    );
  }
}

/**
 * Reports whether an error means that the catalog is unavailable: it did not respond, or asked for a later retry, or a
 * gateway in front of it responded in its place.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof CatalogRequestError) return error.code === undefined || isTransientStatus(error.status);
  return error instanceof CatalogConnectionError || error instanceof CatalogResponseError;
}

function noCatalog(url: string, reason: string): string {
  return `no Tiltyard catalog answers at ${URL.parse(url)?.origin ?? url}: ${reason}`;
}

function summaryOf({ status, headers }: Response): string {
  const target = headers.get("location");
  if (target === null) return `HTTP ${status}`;
  return `HTTP ${status} redirects to ${target}. The client follows no redirects, which would send its key elsewhere`;
}
