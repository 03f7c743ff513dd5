import { contracts } from "@tiltyard/protocol";
import { isWritten } from "../commits/read.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.insertIntoTable;

export const insertIntoTable: Handler<typeof contract> = async (request, catalog, caller) => {
  const { store, rows } = catalog;
  const table = await requireTable(store.read, request.id);
  const isEmpty = branchOf(request) === mainBranch && !(await isWritten(catalog, table));
  const mode = request.mode === "Overwrite" ? "overwrite" : "append";
  const sent = { rows: caller.body, empty: isEmpty ? table : undefined };
  const { result, transaction } = await rows.change("write", { contract, request, caller }, { mode }, sent);
  return { ...transaction, num_inserted_rows: result.rows, version: result.version };
};
