import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.dropTableIndex;

export const dropTableIndex: Handler<typeof contract> = async (request, { datasets }, caller) => {
  await using dataset = await datasets.openForChange({ contract, request, caller });
  await dataset.run((table) => table.dropIndex(request.indexName));
  return transactionOf(dataset);
};
