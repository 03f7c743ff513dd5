import type { remoteContracts } from "@tiltyard/protocol";
import { createTableIndex } from "../operations/create-table-index.ts";
import type { Handler } from "../operations/handler.ts";

export const remoteCreateTableIndex: Handler<typeof remoteContracts.remoteCreateTableIndex> = (
  request,
  catalog,
  caller,
) => createTableIndex({ ...request, distance_type: request.distance_type ?? request.metric_type }, catalog, caller);

/** The library's cache is the same for all requests. */
export const prewarmTableIndex: Handler<typeof remoteContracts.prewarmTableIndex> = async (request, { datasets }) => {
  await using dataset = await datasets.openVersion(request);
  await dataset.run((table) => table.prewarmIndex(request.indexName));
  return {};
};

export const prewarmTableData: Handler<typeof remoteContracts.prewarmTableData> = async (request, { datasets }) => {
  await using _ = await datasets.openVersion(request);
  return {};
};
