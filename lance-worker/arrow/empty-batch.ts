import { Builder } from "flatbuffers";
import { type ArrowMessage, fileOf, messageKinds, messagesOf } from "./arrow-file.ts";
import { numberOf } from "./arrow-type.ts";
import type { FlatTable } from "./flat-table.ts";
import { finishMessage } from "./write-schema.ts";

/** The greatest number of buffers of an array, except those with views, which have any number. */
const buffersMax = 4;
const views = [numberOf("binary_view"), numberOf("utf8_view")];

/** Adds a batch of zero rows to an Arrow file without batches, without which Lance commits no version. */
export function withEmptyBatch(file: Buffer): Buffer {
  const [schema] = messagesOf(file);
  const fields = schema?.table.table(2)?.tables(1);
  if (schema === undefined || fields === undefined) throw new RangeError("the file has no schema");
  return fileOf(schema, emptyBatch(countOf(fields), countOf(fields, isView)));
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
function emptyBatch(arrays: number, arraysOfViews: number): ArrowMessage {
  const builder = new Builder();
  const zeros = (count: number, bytesOfEach: number) => {
    builder.startVector(bytesOfEach, count, 8);
    builder.pad(count * bytesOfEach);
    return builder.endVector();
  };
  // The numbers are the indices of fields in Message.fbs.
  const [nodes, buffers, viewCounts] = [zeros(arrays, 16), zeros(arrays * buffersMax, 16), zeros(arraysOfViews, 8)];
  builder.startObject(5);
  builder.addFieldOffset(1, nodes, 0);
  builder.addFieldOffset(2, buffers, 0);
  builder.addFieldOffset(4, viewCounts, 0);
  return finishMessage(builder, messageKinds.batch, builder.endObject());
}
