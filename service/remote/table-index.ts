import { CatalogError } from "@tiltyard/protocol";
import type { AuthorizedCaller, Catalog, Handler } from "../operations/handler.ts";
import { createTableIndex } from "../operations/table-index.ts";
import type { VersionRequest } from "../rows/reader.ts";

export const remoteCreateTableIndex: Handler<"remoteCreateTableIndex"> = (request, catalog, caller) =>
  createTableIndex({ ...request, distance_type: request.distance_type ?? request.metric_type }, catalog, caller);

/** Loads an index into the library's cache, which all requests share. */
export const prewarmTableIndex: Handler<"prewarmTableIndex"> = async (request, { rows }, caller) => {
  await rows.read("prewarmIndex", { ...request, caller }, { name: request.indexName });
  return {};
};

export const prewarmTableData: Handler<"prewarmTableData"> = async (request, { rows }, caller) => {
  await rows.read("schema", { ...request, caller }, {});
  return {};
};

export const getLsmWriteSpec: Handler<"getLsmWriteSpec"> = async (request, catalog, caller) => {
  await requireNoLsm(request, catalog, caller);
  return { lsm_write_spec: null };
};

export const getLsmStats: Handler<"getLsmStats"> = async (request, catalog, caller) => {
  await requireNoLsm(request, catalog, caller);
  return { lsm_stats: null };
};

/** Requires a table without rows in Lance's MemWAL, which queries would miss. @throws CatalogError Unsupported */
async function requireNoLsm(request: Omit<VersionRequest, "caller">, { rows }: Catalog, caller: AuthorizedCaller) {
  const { result: hasLsm } = await rows.read("hasLsm", { ...request, caller }, {});
  if (hasLsm)
    throw new CatalogError("Unsupported", "the table has an LSM write spec, which this catalog does not support");
}
