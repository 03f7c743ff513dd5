import { fieldOf, metadataOf } from "./arrow-field.ts";
import { type ArrowMessage, fileOf, messageOf, messagesOf, prefixBytes } from "./arrow-file.ts";
import { arrowType, numberOf } from "./arrow-type.ts";
import type { FlatTable } from "./flat-table.ts";
import { writeSchema } from "./write-schema.ts";

/** The versions of data files with legacy blobs. Later ones store only blobs of the extension type. */
export const legacyBlobVersions: readonly string[] = ["2.0", "2.1"];
/** The metadata of a binary column whose values are blobs up to file version 2.1. */
const legacy = "lance-encoding:blob";
const bytes = [numberOf("binary"), numberOf("large_binary")];
/** The metadata of a struct of blobs since file version 2.2. */
const extension = { key: "ARROW:extension:name", name: "lance.blob.v2" };

/** A field of a schema, and the position of the reference to it. */
interface Place {
  readonly slot: number;
  readonly field: FlatTable;
}

/**
 * Returns an Arrow file without rows whose legacy blob columns have the type `lance.blob.v2`; undefined if the file has
 * no legacy blob column. Lance 12 creates no table with a legacy one, because it writes files of version 2.2, but converts
 * such rows as it appends them.
 */
export function convertLegacyBlobs(file: Buffer): Buffer | undefined {
  const [message] = messagesOf(file);
  const schema = message?.table.table(2);
  if (message === undefined || schema === undefined) return undefined;
  const places = legacyBlobs(schema, 1);
  if (places.length === 0) return undefined;
  return fileOf(withFields(message, places, convertedFields(places)));
}

/** Finds the legacy blobs of a list of fields and of the structs in it. */
function legacyBlobs(parent: FlatTable, index: number): Place[] {
  const fields = parent.tables(index);
  return parent.slots(index).flatMap((slot, item) => {
    const field = fields[item];
    if (field === undefined) return [];
    const kind = field.byte(2);
    if (kind === numberOf("struct")) return legacyBlobs(field, 5);
    return bytes.includes(kind) && metadataOf(field, 6).metadata?.[legacy] === "true" ? [{ slot, field }] : [];
  });
}

/** Returns the message of a schema with the converted fields. */
function convertedFields(places: readonly Place[]): ArrowMessage {
  const blob = (name: string, kind: "large_binary" | "utf8") => ({
    name,
    nullable: true,
    type: arrowType(kind),
    children: [],
  });
  const fields = places.map(({ field }) => {
    const { name, nullable, metadata } = fieldOf(field);
    const { [legacy]: _, ...kept } = { ...metadata, [extension.key]: extension.name };
    const children = [blob("data", "large_binary"), blob("uri", "utf8")];
    return { name, nullable, type: arrowType("struct"), children, metadata: kept };
  });
  return writeSchema(fields);
}

/**
 * Returns a schema with other fields at these places. The references of a FlatBuffer are relative and point forward, so
 * they can point to a second FlatBuffer that follows the first.
 */
function withFields(schema: ArrowMessage, places: readonly Place[], others: ArrowMessage): ArrowMessage {
  const metadata = Buffer.concat(
    [schema, others].map(({ bytes, headBytes }) => bytes.subarray(prefixBytes, headBytes)),
  );
  const fields = others.table.table(2)?.tables(1) ?? [];
  for (const [index, { slot }] of places.entries()) {
    const target = schema.headBytes - prefixBytes + (fields[index]?.position ?? 0);
    metadata.writeUInt32LE(target - slot, slot);
  }
  return messageOf(metadata);
}
