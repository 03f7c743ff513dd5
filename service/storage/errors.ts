import { CatalogError } from "@tiltyard/protocol";

/** The error of a store that cannot be used now. The cause stays in the log: it may name hosts and accounts. */
export function unavailable(key: string, cause: unknown): CatalogError {
  return new CatalogError("ServiceUnavailable", `The storage of ${key} cannot be used now; try again.`, { cause });
}
