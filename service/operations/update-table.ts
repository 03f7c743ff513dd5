import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

const contract = contracts.updateTable;

export const updateTable: Handler<"updateTable"> = async (request, { rows }, caller) => {
  const { predicate: where, updates } = request;
  const { result, table, transaction } = await rows.change("update", { contract, request, caller }, { where, updates });
  const { rowsUpdated, version } = result;
  return { ...transaction, updated_rows: rowsUpdated, version, properties: { ...table.properties } };
};
