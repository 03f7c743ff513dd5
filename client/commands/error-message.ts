import { formatError } from "@tiltyard/protocol";
import { CatalogConnectionError, CatalogRequestError } from "../catalog/errors.ts";
import { isSuppressedError } from "../suppressed-error.ts";

const sourcesOfKey =
  "A command has its key from TILTYARD_API_KEY, tiltyard login or, on this machine, data/development.key of the current folder";

/** Formats an error for a terminal, with the errors that it suppresses. */
export function reportOf(error: unknown): string {
  const failures = failuresOf(error);
  if (failures.length > 1) return failures.map(reportOf).join("\n");
  if (error instanceof CatalogRequestError && error.status === 401) return `${error.message}. ${sourcesOfKey}`;
  if (error instanceof CatalogConnectionError)
    return `${error.message}. tiltyard serve starts a catalog on this machine; TILTYARD_CATALOG_URL names another one`;
  return formatError(error);
}

/** Returns the errors within an error in chronological order, because cleanup may fail after the work itself. */
export function failuresOf(error: unknown): readonly unknown[] {
  return isSuppressedError(error) ? [...failuresOf(error.suppressed), ...failuresOf(error.error)] : [error];
}
