import { CatalogError } from "@tiltyard/protocol";

/** A body may have as many problems as values; the answer names the first of them. */
const toldMax = 20;

/** The error of a request that has these problems, one at least. */
export function invalidInput(problems: readonly string[]): CatalogError {
  const rest = problems.length - toldMax;
  const told = [...problems.slice(0, toldMax), ...(rest > 0 ? [`and ${rest} more`] : [])];
  return new CatalogError("InvalidInput", told.join("; "));
}
