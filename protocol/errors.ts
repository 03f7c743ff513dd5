import { z } from "zod";

/** The `type` and the `title` of the error body by HTTP status. The title of 409 belongs to AlterTransaction alone. */
const statuses = {
  400: { type: "/errors/bad-request", title: "Malformed request" },
  401: { type: "/errors/unauthorized-request", title: "No valid authentication credentials for the operation" },
  403: { type: "/errors/forbidden-request", title: "Not authorized to make this request" },
  404: { type: "/errors/not-found-error", title: "Not found Error" },
  405: { type: "/errors/method-not-allowed", title: "Method not allowed" },
  406: { type: "/errors/unsupported-operation", title: "Unsupported operation" },
  409: { type: "/errors/conflict", title: "The namespace has been concurrently modified" },
  413: { type: "/errors/payload-too-large", title: "Request body too large" },
  415: { type: "/errors/unsupported-media-type", title: "Unsupported media type" },
  429: { type: "/errors/too-many-requests", title: "Too many requests" },
  500: { type: "/errors/server-error", title: "Internal Server Error" },
  503: { type: "/errors/service-unavailable", title: "Slow down" },
} as const;

export type ErrorStatus = keyof typeof statuses;

/**
 * The kinds of errors, with the error code of the protocol and the HTTP status. Names and codes are those of the
 * protocol's `ErrorResponse`. The last ten are errors of management, of Functions and of requests that match no operation; they use
 * the nearest code of the protocol.
 */
const kinds = {
  Unsupported: { code: 0, status: 406 },
  NamespaceNotFound: { code: 1, status: 404 },
  NamespaceAlreadyExists: { code: 2, status: 409, title: "The namespace already exists" },
  NamespaceNotEmpty: { code: 3, status: 409, title: "The namespace is not empty" },
  TableNotFound: { code: 4, status: 404 },
  TableAlreadyExists: { code: 5, status: 409, title: "The table already exists" },
  TableIndexNotFound: { code: 6, status: 404 },
  TableIndexAlreadyExists: { code: 7, status: 409, title: "The index already exists" },
  TableTagNotFound: { code: 8, status: 404 },
  TableTagAlreadyExists: { code: 9, status: 409, title: "The tag already exists" },
  TransactionNotFound: { code: 10, status: 404 },
  TableVersionNotFound: { code: 11, status: 404 },
  TableColumnNotFound: { code: 12, status: 404 },
  InvalidInput: { code: 13, status: 400 },
  ConcurrentModification: { code: 14, status: 409, title: "The object has been concurrently modified" },
  PermissionDenied: { code: 15, status: 403 },
  Unauthenticated: { code: 16, status: 401 },
  ServiceUnavailable: { code: 17, status: 503 },
  Internal: { code: 18, status: 500 },
  InvalidTableState: { code: 19, status: 409, title: "The state of the table does not allow the operation" },
  TableSchemaValidationError: { code: 20, status: 400 },
  Throttling: { code: 21, status: 503 },
  TableBranchNotFound: { code: 22, status: 404 },
  TableBranchAlreadyExists: { code: 23, status: 409, title: "The branch already exists" },
  ApiKeyNotFound: { code: 13, status: 404 },
  GrantNotFound: { code: 13, status: 404 },
  FunctionNotFound: { code: 13, status: 404 },
  SecretNotFound: { code: 13, status: 404 },
  SecretAlreadyExists: { code: 13, status: 409, title: "The secret already exists" },
  RouteNotFound: { code: 0, status: 404 },
  MethodNotAllowed: { code: 0, status: 405 },
  PayloadTooLarge: { code: 13, status: 413 },
  TooManyJobs: { code: 21, status: 429 },
  UnsupportedMediaType: { code: 13, status: 415 },
} as const satisfies Record<
  string,
  { code: number; status: Exclude<ErrorStatus, 409> } | { code: number; status: 409; title: string }
>;

export type ErrorKind = keyof typeof kinds;

/** The error body of the service: five standard fields, and `code` and `error` of the protocol. */
export const ErrorResponse = z
  .object({
    type: z.string().describe("A path of the form `/errors/<kind>`."),
    title: z.string(),
    status: z.int().describe("The HTTP status code."),
    detail: z.string().describe("The problem, and how to fix it."),
    instance: z.string().describe("The path of the request."),
    code: z.int().min(0).describe("The error code of the protocol."),
    error: z.string().describe("The same message as `detail`, for Lance clients."),
    request_id: z.string().optional().describe("The id of the request in the log of the service."),
  })
  .meta({ id: "ErrorResponse" });
export type ErrorResponse = z.infer<typeof ErrorResponse>;

/** An error for the caller. Any other thrown value is a bug and becomes a 500 that contains only the request id. */
export class CatalogError extends Error {
  override readonly name = "CatalogError";
  readonly kind: ErrorKind;
  /** The number of seconds before a retry, which becomes the `Retry-After` header. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: ErrorKind,
    message: string,
    options: { readonly cause?: unknown; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.retryAfterSeconds = options.retryAfterSeconds ?? (kinds[kind].status === 503 ? 1 : undefined);
  }

  get code(): number {
    return kinds[this.kind].code;
  }

  get status(): ErrorStatus {
    return kinds[this.kind].status;
  }

  /** Converts the error to an error body. @param instance The path of the request. */
  toResponse(instance: string, requestId?: string, operationId?: string): ErrorResponse {
    const kind = kinds[this.kind];
    return {
      ...statuses[this.status],
      ...("title" in kind && operationId !== "AlterTransaction" && { title: kind.title }),
      status: this.status,
      detail: this.message,
      instance,
      code: this.code,
      error: this.message,
      ...(requestId !== undefined && { request_id: requestId }),
    };
  }
}

/** Reports whether an error is one for the caller of one of these kinds. */
export function hasKind(error: unknown, ...kinds: readonly ErrorKind[]): error is CatalogError {
  return error instanceof CatalogError && kinds.includes(error.kind);
}

/** Returns the description of an error status for the OpenAPI document. */
export function titleOf(status: ErrorStatus, operationId: string): string {
  if (status === 409 && operationId !== "AlterTransaction") return "Conflict with the state of the object";
  return statuses[status].title;
}

/** Returns the message of an error, or any other thrown value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the code of an error of the system or of a driver, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Formats an error for a terminal: the message of an error that the user can fix, the stack of a bug. */
export function formatError(error: unknown): string {
  const isBug = [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
  return isBug && error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
}

/** Reports whether a request without a response, or with this response status, may succeed later. */
export function isTransientStatus(status: number | undefined): boolean {
  return status === undefined || status === 429 || status >= 500;
}

/** Requires that the client still waits for the response. @throws CatalogError InvalidInput, which only the log shows. */
export function requireClient(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CatalogError("InvalidInput", "the client disconnected before the response");
}
