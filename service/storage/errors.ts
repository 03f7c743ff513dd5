import { CatalogError } from "@tiltyard/protocol";
import { readBytesMax } from "./object-store.ts";

/** Creates the error of an unavailable store. The cause is only logged, because it may name hosts and accounts. */
export function unavailable(key: string, cause: unknown): CatalogError {
  return new CatalogError("ServiceUnavailable", `The storage of ${key} cannot be used now; try again.`, { cause });
}

/** Runs a request to a cloud. @throws CatalogError ServiceUnavailable if it fails. */
export async function orUnavailable<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(key, error);
  }
}

/** Rejects an object that is read as a whole and exceeds the expected size. @throws CatalogError InvalidTableState */
export function requireReadable(key: string, sizeBytes: number, bytesMax: number = readBytesMax): void {
  if (sizeBytes > bytesMax)
    throw new CatalogError("InvalidTableState", `${key} has ${sizeBytes} bytes; ${bytesMax} are allowed`);
}
