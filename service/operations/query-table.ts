import type { contracts } from "@tiltyard/protocol";
import { buildQuery } from "../dataset/query.ts";
import { streamRows } from "../dataset/rows-out.ts";
import type { Handler } from "./handler.ts";

export const queryTable: Handler<typeof contracts.queryTable> = async (request, { datasets }) => {
  const dataset = await datasets.openVersion(request);
  return streamRows(dataset, (table) => buildQuery(dataset.lancedb, table, request));
};
