import { contracts } from "@tiltyard/protocol";
import { requireTable } from "../domain/require.ts";
import { inTurn, isUnwritten } from "./first-version.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.insertIntoTable;

export const insertIntoTable: Handler<"insertIntoTable"> = async (request, catalog, caller) => {
  const mode = request.mode === "Overwrite" ? "overwrite" : "append";
  const { result, transaction } = await inTurn(catalog, request, async () => {
    const table = await requireTable(catalog.store.read, request.id);
    const empty = (await isUnwritten(catalog, table, request)) ? table : undefined;
    return catalog.rows.change("write", { contract, request, caller }, { mode }, { rows: caller.body, empty });
  });
  return { ...transaction, num_inserted_rows: result.rows, version: result.version };
};
