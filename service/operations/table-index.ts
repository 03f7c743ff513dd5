import { type IndexDescription, type IndexRequest, scalarTypes } from "@tiltyard/lance-worker";
import { CatalogError, hasKind } from "@tiltyard/protocol";
import { openBranch, readManifest, requireVersion } from "../commits/read.ts";
import { keyText, readPage } from "../domain/page.ts";
import { indicesOf, type ManifestIndex } from "../lance/indices.ts";
import type { ReadRequest } from "../rows/reader.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

export const createTableIndex: Handler<"createTableIndex"> = createIndex;

export const createTableScalarIndex: Handler<"createTableScalarIndex"> = async (request, catalog, caller) => {
  if (!scalarTypes.includes(request.index_type.toUpperCase()))
    throw new CatalogError("InvalidInput", `index_type: must be one of ${scalarTypes.join(", ")}`);
  return createIndex(request, catalog, caller);
};

async function createIndex(request: IndexRequest, { rows }: Catalog, caller: AuthorizedCaller) {
  return (await rows.change("createIndex", { request, caller }, request)).transaction;
}

export const describeTableIndexStats: Handler<"describeTableIndexStats"> = async (request, { rows }, caller) => {
  const { result: stats } = await rows.read("indexStats", { ...request, caller }, { name: request.indexName });
  if (stats === null)
    throw new CatalogError("TableIndexNotFound", `the table has no index ${JSON.stringify(request.indexName)}`);
  return {
    index_type: stats.indexType,
    num_indexed_rows: stats.numIndexedRows,
    num_unindexed_rows: stats.numUnindexedRows,
    distance_type: stats.distanceType,
    num_indices: stats.numIndices,
  };
};

export const dropTableIndex: Handler<"dropTableIndex"> = async (request, { rows }, caller) =>
  (await rows.change("dropIndex", { request, caller }, { name: request.indexName })).transaction;

export const listTableIndices: Handler<"listTableIndices"> = async (request, catalog, caller) => {
  const { rows } = catalog;
  const { version, result } = await rows.read("indices", { ...request, caller }, {});
  const at = { id: request.id, branch: request.branch, version, caller };
  const recorded = new Map((await recordedIndices(catalog, at)).map((index) => [index.name, index]));
  const names = [...new Set([...result.map(({ name }) => name), ...recorded.keys()])].toSorted();
  const { items, ...page } = await readPage({ name: "indices", key: keyText }, request, async (after = "", limit) =>
    names.filter((name) => name > after).slice(0, limit),
  );
  const known = new Map(result.map((index) => [index.name, index]));
  const indexes = items.map(async (name) => {
    const index = known.get(name) ?? (await withStats(rows, at, recorded.get(name)));
    return toIndexContent({ ...index, columns: recorded.get(name)?.columns ?? index.columns });
  });
  return { indexes: await Promise.all(indexes), ...page };
};

/** Returns the indices of the manifest; none for a manifest that this catalog cannot read. */
export async function recordedIndices(catalog: Catalog, at: ReadRequest): Promise<readonly ManifestIndex[]> {
  const opened = await openBranch(catalog, at);
  const record = await requireVersion(catalog, opened, at.version);
  try {
    return await readManifest(catalog, opened.table, record, indicesOf);
  } catch (error) {
    if (hasKind(error, "Unsupported")) return [];
    throw error;
  }
}

async function withStats(rows: Catalog["rows"], at: ReadRequest, index: ManifestIndex | undefined) {
  if (index === undefined) throw new Error("an index is in the list of the library or in the manifest");
  const { name, uuid, columns, typeUrl, segments } = index;
  const { result: stats } = await rows.read("indexStats", at, { name });
  return {
    name,
    indexUuid: uuid,
    columns,
    typeUrl,
    indexType: indexTypeOf(typeUrl) ?? stats?.indexType ?? "",
    numSegments: segments,
    ...(stats !== null && { numIndexedRows: stats.numIndexedRows, numUnindexedRows: stats.numUnindexedRows }),
  };
}

/** Returns the type of an index such as `BTREE` for `/lance.table.BTreeIndexDetails`; undefined for other texts. */
export function indexTypeOf(typeUrl: string): string | undefined {
  // A pattern that may begin anywhere needs hours for the long text of a forged manifest.
  const message = typeUrl.slice(typeUrl.lastIndexOf(".") + 1);
  return /^(\w+)IndexDetails$/.exec(message)?.[1]?.toUpperCase();
}

function toIndexContent(index: IndexDescription) {
  return {
    index_name: index.name,
    index_uuid: index.indexUuid ?? "",
    columns: index.columns,
    // An index is listed only after its commit, when it is complete.
    status: "SUCCEEDED",
    // Requests have `IVF_FLAT` for the library's `IvfFlat`.
    index_type: index.indexType.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase(),
    type_url: index.typeUrl,
    num_indexed_rows: index.numIndexedRows,
    num_unindexed_rows: index.numUnindexedRows,
    size_bytes: index.sizeBytes,
    num_segments: index.numSegments,
    created_at: index.createdAt,
    index_version: index.indexVersion,
    index_details: index.indexDetails,
  };
}
