import { CatalogError } from "@tiltyard/protocol";
import type { Manifest } from "./manifest.ts";

/** The maximum bytes of all metadata of a schema. Every commit writes and every process holds all of it. */
const metadataBytesMax = 4 * 1024 * 1024;

/** Returns the maximum after a manifest, which may exceed the limit itself. @throws CatalogError Unsupported */
export function metadataLimitAfter({ metadataBytes }: Manifest): number {
  return Math.max(metadataBytesMax, metadataBytes);
}

export class MetadataTooLargeError extends CatalogError {
  constructor(bytes: number, bytesMax: number) {
    const found = `the schema and its fields would have ${bytes} bytes of metadata, and at most ${bytesMax} are allowed`;
    super("InvalidInput", `metadata: ${found}. Remove keys, or store long texts in a column or a file`);
  }
}

/** Checks the metadata in the manifest of a change. @throws MetadataTooLargeError; CatalogError Unsupported */
export function requireMetadataWithin({ metadataBytes: bytes }: Manifest, bytesMax: number): void {
  if (bytes > bytesMax) throw new MetadataTooLargeError(bytes, bytesMax);
}
