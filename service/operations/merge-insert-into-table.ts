import { CatalogError, contracts, millisecondsOf, type RequestOf } from "@tiltyard/protocol";
import { isWritten } from "../commits/read.ts";
import type { RawTable } from "../dataset/library.ts";
import { fileBytes } from "../dataset/message-stream.ts";
import { readOneFile, writeRows } from "../dataset/write-rows.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.mergeInsertIntoTable;
type Request = RequestOf<typeof contract>;

export const mergeInsertIntoTable: Handler<typeof contract> = async (request, catalog, caller) => {
  const { num_attempts: _, num_rows: __, ...answer } = await mergeRows(request, catalog, caller);
  return answer;
};

/** Merges rows. The answer also counts the rows written and the attempts. */
export async function mergeRows(request: Request, catalog: Catalog, caller: AuthorizedCaller) {
  const { store, datasets } = catalog;
  const change = { contract, request, caller };
  const table = await requireTable(store.read, request.id);
  if (branchOf(request) === mainBranch && !(await isWritten(catalog, table))) {
    await using empty = await datasets.openEmpty(change, table);
    const { rows, version } = await writeRows(empty, caller.body, "append");
    const none = { num_updated_rows: 0, num_deleted_rows: 0, num_attempts: 1 };
    return { ...transactionOf(empty), ...none, num_inserted_rows: rows, num_rows: rows, version };
  }
  await using dataset = await datasets.openForChange(change);
  const file = await readOneFile(caller.body, fileBytes.most);
  const merged = await dataset.runRaw((opened) => mergeOf(opened, request).execute(file));
  return {
    ...transactionOf(dataset),
    num_updated_rows: merged.numUpdatedRows,
    num_inserted_rows: merged.numInsertedRows,
    num_deleted_rows: merged.numDeletedRows,
    version: merged.version,
    num_attempts: merged.numAttempts,
    num_rows: merged.numRows,
  };
}

function mergeOf(table: RawTable, request: Request) {
  let merge = table.mergeInsert([request.on]);
  if (request.when_matched_update_all || request.when_matched_update_all_filt !== undefined)
    merge = merge.whenMatchedUpdateAll(request.when_matched_update_all_filt);
  if (request.when_not_matched_insert_all) merge = merge.whenNotMatchedInsertAll();
  if (request.when_not_matched_by_source_delete || request.when_not_matched_by_source_delete_filt !== undefined)
    merge = merge.whenNotMatchedBySourceDelete(request.when_not_matched_by_source_delete_filt);
  if (request.use_index !== undefined) merge = merge.useIndex(request.use_index);
  if (request.timeout !== undefined) merge.setTimeout(timeoutOf(request.timeout));
  return merge;
}

function timeoutOf(text: string): number {
  const milliseconds = millisecondsOf(text);
  if (milliseconds >= 1 && milliseconds < 2 ** 32) return milliseconds;
  throw new CatalogError("InvalidInput", "timeout: must be at least 1ms and less than 49 days");
}
