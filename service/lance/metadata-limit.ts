import { CatalogError } from "@tiltyard/protocol";
import { metadataBytesOf } from "./manifest.ts";

/** The maximum bytes of all metadata of a schema. Every commit writes and every process holds all of it. */
const metadataBytesMax = 4 * 1024 * 1024;

/** Returns the maximum after a manifest, which may exceed the limit itself. @throws CatalogError Unsupported */
export function metadataLimitAfter(manifest: Uint8Array): number {
  return Math.max(metadataBytesMax, metadataBytesOf(manifest));
}

export class MetadataTooLargeError extends CatalogError {
  constructor(bytes: number, bytesMax: number) {
    const found = `the schema and its fields would have ${bytes} bytes of metadata, and at most ${bytesMax} are allowed`;
    super("InvalidInput", `metadata: ${found}. Remove keys, or store long texts in a column or a file`);
  }
}

/** Checks the metadata in the manifest of a change. @throws MetadataTooLargeError; CatalogError Unsupported */
export function requireMetadataWithin(manifest: Uint8Array, bytesMax: number): void {
  const bytes = metadataBytesOf(manifest);
  if (bytes > bytesMax) throw new MetadataTooLargeError(bytes, bytesMax);
}
