import { CatalogError, type ErrorKind } from "@tiltyard/protocol";

/**
 * The errors that LanceDB's client would misinterpret: any 404 means a missing table to it, and it retries a 409 in
 * vain. It detects an existing table by a 400 with certain words in its message, and an existing branch by the 409, which
 * it does not retry there.
 */
const malformed: readonly ErrorKind[] = [
  "TableAlreadyExists",
  "TableColumnNotFound",
  "TableTagNotFound",
  "TableTagAlreadyExists",
  "TableIndexAlreadyExists",
  "InvalidTableState",
];

export function inDialect(error: CatalogError): CatalogError {
  if (!malformed.includes(error.kind)) return error;
  return new CatalogError("InvalidInput", error.message, { cause: error });
}
