import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.restoreTable;

export const restoreTable: Handler<typeof contract> = async (request, { datasets }, caller) => {
  await using dataset = await datasets.openForChange({ contract, request, caller });
  await dataset.run(async (table) => {
    await table.checkout(request.version);
    await table.restore();
  });
  return transactionOf(dataset);
};
