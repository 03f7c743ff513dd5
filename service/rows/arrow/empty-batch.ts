import { ArrowFileWriter, continuation, messageKinds, messagesOf, prefixBytes, readMessage } from "./arrow-file.ts";
import type { FlatTable } from "./flat-table.ts";

/** The sizes of the descriptions of an array and of a buffer, and the greatest number of buffers of an array. */
const [entryBytes, buffersMax] = [16, 4];
const version5 = 4;
/** The numbers of the types BinaryView and Utf8View in Schema.fbs, whose arrays have any number of buffers. */
const views = [23, 24];

/** Adds a batch of zero rows to an Arrow file without batches, without which Lance commits no version. */
export function withEmptyBatch(file: Buffer): Buffer {
  const [schema] = messagesOf(file);
  const fields = schema?.table.table(2)?.tables(1);
  if (schema === undefined || fields === undefined) throw new RangeError("the file has no schema");
  const writer = new ArrowFileWriter(schema);
  const batch = readMessage(emptyBatch(countOf(fields), countOf(fields, isView)));
  return Buffer.concat([...writer.begin(), ...writer.add(batch), ...writer.end()]);
}

/** Counts the fields and the fields in them. */
function countOf(fields: readonly FlatTable[], isCounted: (field: FlatTable) => boolean = () => true): number {
  return fields.reduce((sum, field) => sum + Number(isCounted(field)) + countOf(field.tables(5), isCounted), 0);
}

/** A column with a dictionary has an array of indices. */
function isView(field: FlatTable): boolean {
  return views.includes(field.byte(2)) && field.table(4) === undefined;
}

/**
 * Returns a message with a batch of zero rows. Readers ignore more arrays and buffers than the columns need.
 *
 * @param arrays The number of arrays: the columns, and the fields in them.
 * @param arraysOfViews The number of those with views.
 */
function emptyBatch(arrays: number, arraysOfViews: number): Buffer {
  const at = { message: 16, batch: 44, nodes: 60 };
  const buffersAt = at.nodes + 8 + arrays * entryBytes;
  const viewsAt = buffersAt + 8 + arrays * buffersMax * entryBytes;
  const bytes = Buffer.alloc(prefixBytes + viewsAt + 4 + arraysOfViews * 8);
  const metadata = bytes.subarray(prefixBytes);
  bytes.writeUInt32LE(continuation, 0);
  bytes.writeInt32LE(metadata.length, 4);

  // Each table follows its layout: the lengths of layout and table, and the offsets of the fields.
  metadata.writeUInt32LE(at.message, 0);
  for (const [index, value] of [10, 12, 4, 6, 8].entries()) metadata.writeUInt16LE(value, 4 + 2 * index);
  metadata.writeInt32LE(at.message - 4, at.message);
  metadata.writeInt16LE(version5, at.message + 4);
  metadata.writeUInt8(messageKinds.batch, at.message + 6);
  metadata.writeUInt32LE(at.batch - (at.message + 8), at.message + 8);
  for (const [index, value] of [14, 16, 0, 4, 8, 0, 12].entries()) metadata.writeUInt16LE(value, 28 + 2 * index);
  metadata.writeInt32LE(at.batch - 28, at.batch);
  for (const [field, vector, length] of [
    [4, at.nodes, arrays],
    [8, buffersAt, arrays * buffersMax],
    [12, viewsAt, arraysOfViews],
  ] as const) {
    metadata.writeUInt32LE(vector - (at.batch + field), at.batch + field);
    metadata.writeUInt32LE(length, vector);
  }
  return bytes;
}
