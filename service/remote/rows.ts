import type { Handler } from "../operations/handler.ts";
import { deleteRows, mergeRows, updateTable } from "../operations/table-data.ts";

// The client interprets missing counts as 0, so the responses of the protocol's operations suffice.

export const remoteMergeInsertIntoTable: Handler<"remoteMergeInsertIntoTable"> = mergeRows;

export const remoteUpdateTable: Handler<"remoteUpdateTable"> = async (request, catalog, caller) => {
  const { updated_rows, version } = await updateTable(request, catalog, caller);
  return { rows_updated: updated_rows, version };
};

export const remoteDeleteFromTable: Handler<"remoteDeleteFromTable"> = async (request, catalog, caller) => {
  const { num_deleted_rows, version } = await deleteRows(request, catalog, caller);
  return { num_deleted_rows, version };
};
