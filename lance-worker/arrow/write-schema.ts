import { Builder } from "flatbuffers";
import { type ArrowField, metadataOf } from "./arrow-field.ts";
import { type ArrowMessage, messageKinds, messageOf, prefixBytes } from "./arrow-file.ts";
import { type ArrowType, layoutOf, numberOf } from "./arrow-type.ts";
import { FlatTable } from "./flat-table.ts";

/** The version of the format in messages, which is that of Arrow since 1.0. */
const version5 = 4;
type Texts = Readonly<Record<string, string>>;

/** Returns the message of a schema. The numbers are the indices of fields in the tables of Schema.fbs and Message.fbs. */
export function writeSchema(fields: readonly ArrowField[], metadata: Texts = {}): ArrowMessage {
  const builder = new Builder();
  let dictionaries = 0;

  const vector = (offsets: readonly number[]) => {
    builder.startVector(4, offsets.length, 4);
    for (const offset of offsets.toReversed()) builder.addOffset(offset);
    return builder.endVector();
  };
  const metadataVector = (texts: Texts) =>
    vector(
      Object.entries(texts).map((entry) => {
        const [key, value] = entry.map((each) => builder.createString(each));
        builder.startObject(2);
        builder.addFieldOffset(0, key ?? 0, 0);
        builder.addFieldOffset(1, value ?? 0, 0);
        return builder.endObject();
      }),
    );
  const typeTable = ({ kind, parameters }: ArrowType) => {
    const layout = layoutOf(kind);
    const values = parameters.map((each) => (typeof each === "string" ? builder.createString(each) : each));
    builder.startObject(layout.length);
    for (const [index, { width, absent }] of layout.entries()) {
      const value = Number(values[index] ?? absent);
      if (width === "text") builder.addFieldOffset(index, value, 0);
      else if (width === "byte") builder.addFieldInt8(index, value, absent);
      else if (width === "short") builder.addFieldInt16(index, value, absent);
      else builder.addFieldInt32(index, value, absent);
    }
    return builder.endObject();
  };
  const dictionaryTable = ({ index, isOrdered }: NonNullable<ArrowField["dictionary"]>) => {
    const type = typeTable(index);
    builder.startObject(4);
    builder.addFieldInt64(0, BigInt(dictionaries++), 0n);
    builder.addFieldOffset(1, type, 0);
    builder.addFieldInt8(2, Number(isOrdered), 0);
    return builder.endObject();
  };
  const fieldTable = (field: ArrowField): number => {
    const children = vector(field.children.map(fieldTable));
    const [name, type] = [builder.createString(field.name), typeTable(field.type)];
    const dictionary = field.dictionary && dictionaryTable(field.dictionary);
    const texts = metadataVector(field.metadata ?? {});
    builder.startObject(7);
    builder.addFieldOffset(0, name, 0);
    builder.addFieldInt8(1, Number(field.nullable), 0);
    builder.addFieldInt8(2, numberOf(field.type.kind), 0);
    builder.addFieldOffset(3, type, 0);
    builder.addFieldOffset(4, dictionary ?? 0, 0);
    builder.addFieldOffset(5, children, 0);
    builder.addFieldOffset(6, texts, 0);
    return builder.endObject();
  };

  const [fieldVector, texts] = [vector(fields.map(fieldTable)), metadataVector(metadata)];
  builder.startObject(4);
  builder.addFieldOffset(1, fieldVector, 0);
  builder.addFieldOffset(2, texts, 0);
  return finishMessage(builder, messageKinds.schema, builder.endObject());
}

/** Returns the message whose header, such as a schema, a builder contains at an offset. */
export function finishMessage(builder: Builder, kind: number, header: number): ArrowMessage {
  builder.startObject(5);
  builder.addFieldInt16(0, version5, 0);
  builder.addFieldInt8(1, kind, 0);
  builder.addFieldOffset(2, header, 0);
  builder.finish(builder.endObject());
  const bytes = builder.asUint8Array();
  return messageOf(Buffer.concat([bytes, Buffer.alloc(-bytes.length & 7)]));
}

/**
 * Returns the message of a schema with more metadata. The fields are not interpreted: references of a FlatBuffer point
 * forward, so the new message refers to the fields of the present one behind it.
 */
export function withMetadata(schema: ArrowMessage, metadata: Texts): ArrowMessage {
  const present = schema.table.table(2);
  const written = writeSchema([], { ...(present && metadataOf(present, 2).metadata), ...metadata });
  const bytes = Buffer.concat(
    [written, schema].map((message) => message.bytes.subarray(prefixBytes, message.headBytes)),
  );
  const slot = FlatTable.root(bytes).table(2)?.reference(1)?.slot;
  const fields = present?.reference(1)?.target;
  if (slot === undefined || fields === undefined) return written;
  bytes.writeUInt32LE(written.headBytes - prefixBytes + fields - slot, slot);
  return messageOf(bytes);
}
