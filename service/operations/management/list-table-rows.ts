import { type managementContracts, shown } from "@tiltyard/protocol";
import { readFirstRows } from "../../dataset/first-rows.ts";
import type { Handler } from "../handler.ts";

const rowsWhenAbsent = 20;

export const listTableRows: Handler<typeof managementContracts.listTableRows> = async (request, { datasets }) => {
  await using dataset = await datasets.openVersion(request);
  return readFirstRows(dataset, Math.min(request.limit ?? rowsWhenAbsent, shown.rows));
};
