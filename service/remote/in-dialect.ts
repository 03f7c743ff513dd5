import { CatalogError, type ErrorKind } from "@tiltyard/protocol";
import type { AuthorizedCaller, Catalog } from "../operations/handler.ts";

/**
 * The errors that LanceDB's client would misinterpret: any 404 means a missing table to it, and it retries a 409 in
 * vain. It detects an existing table by a 400 with certain words in its message.
 */
const malformed: readonly ErrorKind[] = [
  "TableAlreadyExists",
  "TableColumnNotFound",
  "TableTagNotFound",
  "TableTagAlreadyExists",
  "TableIndexAlreadyExists",
  "InvalidTableState",
];

/** Wraps a handler so that LanceDB's client can interpret its errors. */
export function inDialect<Request, Response>(
  handler: (request: Request, catalog: Catalog, caller: AuthorizedCaller) => Promise<Response>,
): typeof handler {
  return async (request, catalog, caller) => {
    try {
      return await handler(request, catalog, caller);
    } catch (cause) {
      if (!(cause instanceof CatalogError) || !malformed.includes(cause.kind)) throw cause;
      throw new CatalogError("InvalidInput", cause.message, { cause });
    }
  };
}
