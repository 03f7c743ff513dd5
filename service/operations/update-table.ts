import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.updateTable;

export const updateTable: Handler<typeof contract> = async (request, { datasets }, caller) => {
  const { predicate } = request;
  const updates = new Map(request.updates.map(([path = "", expression = ""]) => [path, expression]));
  await using dataset = await datasets.openForChange({ contract, request, caller });
  const { rowsUpdated, version } = await dataset.run((table) =>
    table.update({ valuesSql: updates, ...(predicate !== undefined && { where: predicate }) }),
  );
  return {
    ...transactionOf(dataset),
    updated_rows: rowsUpdated,
    version,
    properties: { ...dataset.record.properties },
  };
};
