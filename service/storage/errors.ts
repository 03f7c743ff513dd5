import { CatalogError } from "@tiltyard/protocol";
import { readBytesMax } from "./object-store.ts";

/** The error of a store that cannot be used now. The cause is only logged: it may name hosts and accounts. */
export function unavailable(key: string, cause: unknown): CatalogError {
  return new CatalogError("ServiceUnavailable", `The storage of ${key} cannot be used now; try again.`, { cause });
}

/** Refuses an object that would have to be read as a whole and is larger than what is expected there. */
export function requireReadable(key: string, sizeBytes: number, bytesMax: number = readBytesMax): void {
  if (sizeBytes > bytesMax)
    throw new CatalogError("InvalidTableState", `${key} has ${sizeBytes} bytes, and is to have ${bytesMax} at most`);
}
