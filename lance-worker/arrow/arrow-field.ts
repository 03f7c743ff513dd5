import { type ArrowMessage, footerOf, messageOf, prefixBytes } from "./arrow-file.ts";
import { type ArrowType, arrowType, numberOf, readType } from "./arrow-type.ts";
import type { FlatTable } from "./flat-table.ts";

type Metadata = { readonly metadata?: Readonly<Record<string, string>> };

export interface ArrowField extends Metadata {
  readonly name: string;
  readonly nullable: boolean;
  readonly type: ArrowType;
  readonly children: readonly ArrowField[];
  /** The dictionary of a column, whose values have the type `type`. */
  readonly dictionary?: { readonly index: ArrowType; readonly isOrdered: boolean } | undefined;
}

/** Reads the fields of an Arrow IPC file and the metadata of its schema. */
export function readFields(file: Buffer): Metadata & { readonly fields: readonly ArrowField[] } {
  const schema = footerOf(file).table(1);
  return { fields: (schema?.tables(1) ?? []).map(fieldOf), ...(schema && metadataOf(schema, 2)) };
}

/** Reads a field. The numbers are the indices of fields in the tables of Schema.fbs, the second arguments their defaults. */
export function fieldOf(field: FlatTable): ArrowField {
  const dictionary = field.table(4);
  const index = dictionary?.table(1);
  return {
    name: field.text(0) ?? "",
    nullable: field.byte(1) === 1,
    type: readType(field.byte(2), field.table(3)),
    children: field.tables(5).map(fieldOf),
    // The default type of indices is int32.
    dictionary: dictionary && {
      index: index === undefined ? arrowType("int", [32, 1]) : readType(numberOf("int"), index),
      isOrdered: dictionary.byte(2) === 1,
    },
    ...metadataOf(field, 6),
  };
}

export function metadataOf(of: FlatTable, index: number): Metadata {
  const entries = of.tables(index).map((entry) => [entry.text(0) ?? "", entry.text(1) ?? ""]);
  return entries.length === 0 ? {} : { metadata: Object.fromEntries(entries) };
}

/** Returns the message of a schema with other zones of its timestamps. */
export function withZones(schema: ArrowMessage, convert: (zone: string) => string): ArrowMessage {
  const edits: { readonly slot: number; readonly text: string }[] = [];
  const visit = (field: FlatTable) => {
    const type = field.byte(2) === numberOf("timestamp") ? field.table(3) : undefined;
    const [zone, reference] = [type?.text(1), type?.reference(1)];
    if (zone !== undefined && reference !== undefined && convert(zone) !== zone)
      edits.push({ slot: reference.slot, text: convert(zone) });
    for (const child of field.tables(5)) visit(child);
  };
  for (const field of schema.table.table(2)?.tables(1) ?? []) visit(field);
  return edits.length === 0 ? schema : withTexts(schema, edits);
}

/** Replaces texts of a message. References of a FlatBuffer point forward, so the new texts follow the rest. */
function withTexts(
  { bytes, headBytes }: ArrowMessage,
  edits: readonly { readonly slot: number; readonly text: string }[],
): ArrowMessage {
  const metadata = Buffer.from(bytes.subarray(prefixBytes, headBytes));
  const parts = [metadata];
  let length = metadata.length;
  for (const { slot, text } of edits) {
    const content = Buffer.from(text);
    // A text has its length before it, a zero behind it, and a length that is a multiple of 8.
    const part = Buffer.alloc((4 + content.length + 1 + 7) & ~7);
    part.writeUInt32LE(content.length);
    content.copy(part, 4);
    metadata.writeUInt32LE(length - slot, slot);
    parts.push(part);
    length += part.length;
  }
  return messageOf(Buffer.concat(parts));
}
