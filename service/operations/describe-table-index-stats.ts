import { CatalogError } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const describeTableIndexStats: Handler<"describeTableIndexStats"> = async (request, { rows }, caller) => {
  const { result: stats } = await rows.read("indexStats", { ...request, caller }, { name: request.indexName });
  if (stats === null)
    throw new CatalogError("TableIndexNotFound", `the table has no index ${JSON.stringify(request.indexName)}`);
  return {
    index_type: stats.indexType,
    num_indexed_rows: stats.numIndexedRows,
    num_unindexed_rows: stats.numUnindexedRows,
    ...(stats.distanceType !== undefined && { distance_type: stats.distanceType }),
    ...(stats.numIndices !== undefined && { num_indices: stats.numIndices }),
  };
};
