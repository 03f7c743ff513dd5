import { CatalogError } from "@tiltyard/protocol";
import { CatalogRequestError } from "../catalog/errors.ts";
import { isSuppressedError } from "../suppressed-error.ts";

/** An error that the user can fix is printed as a sentence; a bug with its stack. */
export function messageOf(error: unknown): string {
  const failures = failuresOf(error);
  if (failures.length > 1) return failures.map(messageOf).join("\n");
  if (!(error instanceof Error)) return String(error);
  if (error instanceof CatalogRequestError && error.status === 401)
    return `${error.message}; this command has its key from TILTYARD_API_KEY`;
  const isBug = [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
  return isBug && !(error instanceof CatalogError) ? (error.stack ?? error.message) : error.message;
}

/** The errors in one, in the order in which they came: cleaning up may fail after what it cleans up for. */
export function failuresOf(error: unknown): readonly unknown[] {
  return isSuppressedError(error) ? [...failuresOf(error.suppressed), ...failuresOf(error.error)] : [error];
}
