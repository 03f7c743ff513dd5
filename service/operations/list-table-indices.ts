import type { contracts } from "@tiltyard/protocol";
import { keyText, readPage } from "../domain/page.ts";
import type { ResultOf } from "../rows/call.ts";
import type { Readings } from "../rows/child/operations.ts";
import type { Handler } from "./handler.ts";

export const listTableIndices: Handler<typeof contracts.listTableIndices> = async (request, { rows }, caller) => {
  const { result: indices } = await rows.read("indices", { ...request, caller }, {});
  indices.sort((a, b) => (a.name < b.name ? -1 : 1));
  const { items, ...page } = await readPage(
    { name: "indices", key: keyText },
    request,
    async (after = "", limit) => indices.filter(({ name }) => name > after).slice(0, limit),
    ({ name }) => name,
  );
  return { indexes: items.map(toIndexContent), ...page };
};

function toIndexContent(index: ResultOf<Readings["indices"]>[number]) {
  const { createdAt, indexDetails } = index;
  return {
    index_name: index.name,
    index_uuid: index.indexUuid ?? "",
    columns: index.columns,
    // An index is listed once it is committed, which is when it is done.
    status: "SUCCEEDED",
    index_type: index.indexType,
    ...(index.typeUrl !== undefined && { type_url: index.typeUrl }),
    ...(index.numIndexedRows !== undefined && { num_indexed_rows: index.numIndexedRows }),
    ...(index.numUnindexedRows !== undefined && { num_unindexed_rows: index.numUnindexedRows }),
    ...(index.sizeBytes !== undefined && { size_bytes: index.sizeBytes }),
    ...(index.numSegments !== undefined && { num_segments: index.numSegments }),
    ...(createdAt !== undefined && { created_at: createdAt }),
    ...(index.indexVersion !== undefined && { index_version: index.indexVersion }),
    ...(indexDetails !== undefined && { index_details: indexDetails }),
  };
}
