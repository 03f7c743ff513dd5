import { contracts } from "@tiltyard/protocol";
import { isWritten } from "../commits/read.ts";
import { writeRows } from "../dataset/write-rows.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.insertIntoTable;

export const insertIntoTable: Handler<typeof contract> = async (request, catalog, caller) => {
  const { store, datasets } = catalog;
  const change = { contract, request, caller };
  const table = await requireTable(store.read, request.id);
  const isEmpty = branchOf(request) === mainBranch && !(await isWritten(catalog, table));
  await using dataset = isEmpty ? await datasets.openEmpty(change, table) : await datasets.openForChange(change);
  const { rows, version } = await writeRows(
    dataset,
    caller.body,
    request.mode === "Overwrite" ? "overwrite" : "append",
  );
  return { ...transactionOf(dataset), num_inserted_rows: rows, version };
};
