import { CatalogError } from "@tiltyard/protocol";
import { readBytesMax } from "./object-store.ts";

/** The error of a store that cannot be used now. The cause stays in the log: it may name hosts and accounts. */
export function unavailable(key: string, cause: unknown): CatalogError {
  return new CatalogError("ServiceUnavailable", `The storage of ${key} cannot be used now; try again.`, { cause });
}

/** Refuses an object that would have to be read as a whole and is not one that the catalog or Lance has written. */
export function requireReadable(key: string, sizeBytes: number): void {
  if (sizeBytes > readBytesMax)
    throw new CatalogError(
      "InvalidTableState",
      `${key} has ${sizeBytes} bytes, and is to have ${readBytesMax} at most: Lance writes no such file; delete it`,
    );
}
