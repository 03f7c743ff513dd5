import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.deleteFromTable;

export const deleteFromTable: Handler<typeof contract> = async (request, { datasets }, caller) => {
  await using dataset = await datasets.openForChange({ contract, request, caller });
  const { version } = await dataset.run((table) => table.delete(request.predicate));
  return { ...transactionOf(dataset), version };
};
