import { type AnyContract, CatalogError, type ErrorKind } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";

/**
 * What LanceDB's client would take for something else: any 404 is a table that is not there to it, and a 409 is sent
 * again in vain. It knows a table that is there already by a 400 with the words of its message.
 */
const malformed: readonly ErrorKind[] = [
  "TableAlreadyExists",
  "TableColumnNotFound",
  "TableTagNotFound",
  "TableTagAlreadyExists",
  "TableIndexAlreadyExists",
  "InvalidTableState",
];

/** Does an operation whose refusals LanceDB's client is told in a way that it understands. */
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
