import { CatalogError, millisecondsOf } from "@tiltyard/protocol";
import { readFields } from "./arrow/arrow-field.ts";
import type { RawMerge, RawTable } from "./lancedb.ts";
import type { MergeRequest } from "./wire.ts";

/**
 * The maximum number of columns of a table into which rows with some of them are merged. Lance 12 plans such a merge in
 * cubic time: 3 s for 300 columns and 90 s for 1,000, against 1 s for rows with all 1,000 columns.
 */
const partialColumnsMax = 300;

/** Requires rows whose merge Lance plans in seconds. @throws CatalogError InvalidInput */
export function requirePlannable(table: Buffer, rows: Buffer, request: MergeRequest): void {
  const [present, sent] = [table, rows].map((file) => readFields(file).fields.length);
  const { when_matched_update_all: all, when_matched_update_all_filt: some, when_not_matched_insert_all } = request;
  const writes = all || some !== undefined || when_not_matched_insert_all;
  if (!writes || present === undefined || sent === undefined || sent >= present || present <= partialColumnsMax) return;
  throw new CatalogError(
    "InvalidInput",
    `the rows have ${sent} of ${present} columns. A table with more than ${partialColumnsMax} columns accepts merges of rows with all of its columns`,
  );
}

/** Returns the library's merge for a request. @throws CatalogError InvalidInput */
export function mergeOf(table: RawTable, request: MergeRequest): RawMerge {
  const { when_matched_update_all_filt: updated, when_not_matched_by_source_delete_filt: deleted } = request;
  let merge = table.mergeInsert(request.on);
  if (request.when_matched_update_all || updated !== undefined) merge = merge.whenMatchedUpdateAll(updated);
  if (request.when_not_matched_insert_all) merge = merge.whenNotMatchedInsertAll();
  if (request.when_not_matched_by_source_delete || deleted !== undefined)
    merge = merge.whenNotMatchedBySourceDelete(deleted);
  if (request.use_index !== undefined) merge = merge.useIndex(request.use_index);
  if (request.timeout !== undefined) merge.setTimeout(timeoutOf(request.timeout));
  return merge;
}

function timeoutOf(text: string): number {
  const milliseconds = millisecondsOf(text);
  if (milliseconds >= 1 && milliseconds < 2 ** 32) return milliseconds;
  throw new CatalogError("InvalidInput", "timeout: must be at least 1ms and less than 49 days");
}
