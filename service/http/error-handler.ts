import { CatalogError, type ErrorKind, formatIdentifier, hasKind, messageOf, ownValue } from "@tiltyard/protocol";
import type { ErrorHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import { MissingRight } from "../auth/authorize.ts";
import type { Log } from "../log.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { isRemoteClient, respondJson } from "./respond.ts";

/** Renders every error in the format of the protocol. A bug shows only the request id and is logged. */
export function errorHandler(log: Log): ErrorHandler<AppEnv> {
  return async function errorHandler(error, c) {
    const found = await toCatalogError(error, c);
    noteRefusal(c, found);
    // Paths that end in a slash exist only for LanceDB's remote client.
    const isRemote = c.req.path.startsWith("/v1/table/") && (c.req.path.endsWith("/") || isRemoteClient(c));
    const known = isRemote ? inDialect(found, c.get("operation")) : found;
    const { cause, message, status } = known;
    if (status >= 500 && cause !== undefined) log.error({ err: cause, request_id: c.get("requestId") }, message);
    return errorResponse(c, known);
  };
}

/**
 * The errors that LanceDB's client would misinterpret: any 404 means a missing table to it, and it retries a 409 in
 * vain. It detects an existing table by a 400 with certain words in its message, and an existing branch by the 409, which
 * it does not retry there.
 */
const misinterpreted: readonly ErrorKind[] = [
  "TableAlreadyExists",
  "TableBranchNotFound",
  "TableColumnNotFound",
  "TableTagNotFound",
  "TableTagAlreadyExists",
  "TableIndexAlreadyExists",
  "TableVersionNotFound",
  "InvalidTableState",
];

/** The operations whose 404 the client interprets as the missing version or branch of its request. */
const interpreted: Readonly<Record<string, readonly ErrorKind[]>> = {
  DescribeTable: ["TableVersionNotFound"],
  CreateTableBranch: ["TableVersionNotFound", "TableBranchNotFound"],
  DeleteTableBranch: ["TableBranchNotFound"],
};

function inDialect(error: CatalogError, operation = ""): CatalogError {
  const isMisinterpreted =
    hasKind(error, ...misinterpreted) && ownValue(interpreted, operation)?.includes(error.kind) !== true;
  return isMisinterpreted ? new CatalogError("InvalidInput", error.message, { cause: error }) : error;
}

/** Adds the reason of a 403 to the line of the request in the log. */
function noteRefusal(c: AppContext, error: CatalogError): void {
  const principal = c.get("principal");
  if (error.kind !== "PermissionDenied" || principal === undefined) return;
  const { role, object } = error instanceof MissingRight ? error.access : {};
  c.set("refusal", {
    caller: principal.name,
    apiKeyId: principal.apiKeyId,
    ...(role !== undefined && { role }),
    ...(Array.isArray(object) && { object: formatIdentifier(object) }),
  });
}

/** Renders an error without logging it. */
export function errorResponse(c: AppContext, error: CatalogError, headers: Readonly<Record<string, string>> = {}) {
  return respondJson(c, error.toResponse(c.req.path, c.get("requestId"), c.get("operation")), error.status, {
    ...headers,
    ...(error.retryAfterSeconds !== undefined && { "retry-after": `${error.retryAfterSeconds}` }),
    ...(error.status === 401 && { "www-authenticate": "Bearer" }),
  });
}

async function toCatalogError(error: Error, c: AppContext): Promise<CatalogError> {
  if (error instanceof CatalogError) return error;
  if (error instanceof HTTPException) return new CatalogError("InvalidInput", await problemOfBody(error, c));
  if (c.env.incoming?.readableAborted)
    return new CatalogError("InvalidInput", "the client closed the connection before its request was complete");
  return new CatalogError("Internal", "The service failed. Its log has the reason under the request id.", {
    cause: error,
  });
}

/** Returns why Hono's validators rejected a body. Their message about JSON lacks the reason. */
async function problemOfBody({ message }: HTTPException, c: AppContext): Promise<string> {
  if (!("text" in c.req.bodyCache)) return message;
  const problem = String(await c.req.json().catch(messageOf));
  // V8 quotes a part of the body, which may be a secret.
  return `the body is not JSON: ${problem.replace(/, (?:\.{3})?".*"(?:\.{3})? is not valid JSON$/s, "")}`;
}
