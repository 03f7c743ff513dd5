import type { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const countTableRows: Handler<typeof contracts.countTableRows> = async (request, { datasets }) => {
  await using dataset = await datasets.openVersion(request);
  return dataset.run((table) => table.countRows(request.predicate));
};
