import type { Handler } from "./handler.ts";
import { recordedIndices } from "./list-table-indices.ts";

export const getTableStats: Handler<"getTableStats"> = async (request, catalog, caller) => {
  const { version, result } = await catalog.rows.read("stats", { ...request, caller }, {});
  const { totalBytes, numRows, fragmentStats } = result;
  const recorded = await recordedIndices(catalog, { ...request, version, caller });
  const { numFragments, numSmallFragments, lengths } = fragmentStats;
  return {
    total_bytes: totalBytes,
    num_rows: numRows,
    num_indices: Math.max(result.numIndices, recorded.length),
    fragment_stats: { num_fragments: numFragments, num_small_fragments: numSmallFragments, lengths: { ...lengths } },
  };
};
