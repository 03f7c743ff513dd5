import { CatalogError } from "@tiltyard/protocol";

/** The maximum number of problems in one response. A request can have as many problems as values. */
const reportedMax = 20;

/** Creates the error of a request with one or more problems. */
export function invalidInput(problems: readonly string[]): CatalogError {
  const rest = problems.length - reportedMax;
  const reported = [...problems.slice(0, reportedMax), ...(rest > 0 ? [`and ${rest} more`] : [])];
  return new CatalogError("InvalidInput", reported.join("; "));
}
