import { type AnyContract, CatalogError, type ErrorKind } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";

/**
 * Errors that LanceDB's client would misread: it takes any 404 for a missing table, and retries a 409 in vain. It
 * detects an existing table by a 400 with the words of its message.
 */
const malformed: readonly ErrorKind[] = [
  "TableAlreadyExists",
  "TableColumnNotFound",
  "TableTagNotFound",
  "TableTagAlreadyExists",
  "TableIndexAlreadyExists",
  "InvalidTableState",
];

/** Carries out an operation, with errors that LanceDB's client understands. */
export function inDialect<C extends AnyContract>(handler: Handler<C>): Handler<C> {
  return async (request, catalog, caller) => {
    try {
      return await handler(request, catalog, caller);
    } catch (cause) {
      if (!(cause instanceof CatalogError) || !malformed.includes(cause.kind)) throw cause;
      throw new CatalogError("InvalidInput", cause.message, { cause });
    }
  };
}
