import type { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const getTableStats: Handler<typeof contracts.getTableStats> = async (request, { datasets }) => {
  await using dataset = await datasets.openVersion(request);
  const { totalBytes, numRows, numIndices, fragmentStats } = await dataset.run((table) => table.stats());
  const { numFragments, numSmallFragments, lengths } = fragmentStats;
  return {
    total_bytes: totalBytes,
    num_rows: numRows,
    num_indices: numIndices,
    fragment_stats: { num_fragments: numFragments, num_small_fragments: numSmallFragments, lengths: { ...lengths } },
  };
};
