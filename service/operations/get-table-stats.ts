import type { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const getTableStats: Handler<typeof contracts.getTableStats> = async (request, { rows }, caller) => {
  const { result } = await rows.read("stats", { ...request, caller }, {});
  const { totalBytes, numRows, numIndices, fragmentStats } = result;
  const { numFragments, numSmallFragments, lengths } = fragmentStats;
  return {
    total_bytes: totalBytes,
    num_rows: numRows,
    num_indices: numIndices,
    fragment_stats: { num_fragments: numFragments, num_small_fragments: numSmallFragments, lengths: { ...lengths } },
  };
};
