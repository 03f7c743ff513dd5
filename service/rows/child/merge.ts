import { CatalogError, type contracts, millisecondsOf, type RequestOf } from "@tiltyard/protocol";
import type { Expression } from "../sql-text.ts";
import type { RawMerge, RawTable } from "./lancedb.ts";

type Filters = "when_matched_update_all_filt" | "when_not_matched_by_source_delete_filt";
export type MergeRequest = Omit<RequestOf<typeof contracts.mergeInsertIntoTable>, Filters> & {
  readonly [Name in Filters]: Expression | undefined;
};

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
