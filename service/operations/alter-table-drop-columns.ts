import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.alterTableDropColumns;

export const alterTableDropColumns: Handler<typeof contract> = async (request, { datasets }, caller) => {
  await using dataset = await datasets.openForChange({ contract, request, caller });
  const { version } = await dataset.run((table) => table.dropColumns(request.columns));
  return { ...transactionOf(dataset), version };
};
