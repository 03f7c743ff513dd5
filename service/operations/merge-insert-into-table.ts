import { contracts, type RequestOf } from "@tiltyard/protocol";
import { requireTable } from "../domain/require.ts";
import { inTurn, isUnwritten } from "./first-version.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

const contract = contracts.mergeInsertIntoTable;
type Request = RequestOf<typeof contract>;

export const mergeInsertIntoTable: Handler<"mergeInsertIntoTable"> = async (request, catalog, caller) => {
  const { num_attempts: _, num_rows: __, ...answer } = await mergeRows(request, catalog, caller);
  return answer;
};

/** Merges rows. The response also contains the number of written rows and of attempts. */
export async function mergeRows(request: Request, catalog: Catalog, caller: AuthorizedCaller) {
  return inTurn(catalog, request, () => merge(request, catalog, caller));
}

async function merge(request: Request, catalog: Catalog, caller: AuthorizedCaller) {
  const { store, rows } = catalog;
  const change = { contract, request, caller };
  const sent = { rows: caller.body };
  const table = await requireTable(store.read, request.id);
  if (await isUnwritten(catalog, table, request)) {
    const { result, transaction } = await rows.change("write", change, { mode: "append" }, { ...sent, empty: table });
    const none = { num_updated_rows: 0, num_deleted_rows: 0, num_attempts: 1 };
    return { ...transaction, ...none, num_inserted_rows: result.rows, num_rows: result.rows, version: result.version };
  }
  const { result: merged, transaction } = await rows.change("merge", change, request, sent);
  return {
    ...transaction,
    num_updated_rows: merged.numUpdatedRows,
    num_inserted_rows: merged.numInsertedRows,
    num_deleted_rows: merged.numDeletedRows,
    version: merged.version,
    num_attempts: merged.numAttempts,
    num_rows: merged.numRows,
  };
}
