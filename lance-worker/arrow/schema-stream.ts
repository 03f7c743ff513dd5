import type { JsonArrowSchema } from "@tiltyard/protocol";
import { endOfStream, readMessage } from "./arrow-file.ts";
import { notArrow } from "./message-stream.ts";
import { parseField } from "./parse-type.ts";
import { withMetadata, writeSchema } from "./write-schema.ts";

/** Returns an Arrow stream with columns and without rows. @throws CatalogError InvalidInput for types that columns cannot have. */
export function columnsAsStream(fields: JsonArrowSchema["fields"]): Buffer {
  return Buffer.concat([writeSchema(fields.map(parseField)).bytes, endOfStream]);
}

/** Adds metadata to the schema of an Arrow stream. @returns A stream without rows. @throws CatalogError InvalidInput */
export function schemaWith(stream: Buffer, metadata: Readonly<Record<string, string>>): Buffer {
  try {
    return Buffer.concat([withMetadata(readMessage(stream), metadata).bytes, endOfStream]);
  } catch (error) {
    throw error instanceof RangeError ? notArrow("its metadata is broken") : error;
  }
}
