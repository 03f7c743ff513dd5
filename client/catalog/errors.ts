import { ErrorResponse } from "@tiltyard/protocol";

/** What the catalog answered instead of a result. */
export class CatalogRequestError extends Error {
  override readonly name = "CatalogRequestError";
  readonly operation: string;
  /** The HTTP status. */
  readonly status: number;
  /** The protocol's error code; undefined when the answer was none of the catalog's. */
  readonly code: number | undefined;
  /** Names the request in the catalog's log. */
  readonly requestId: string | undefined;
  /** How long the catalog asks to wait before a retry. */
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

/** The catalog gave no answer: it could not be reached, or the time was over. */
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
