import { CatalogError } from "@tiltyard/protocol";
import type { ReadRequest } from "../../rows/reader.ts";
import type { AuthorizedCaller, Catalog, Handler } from "../handler.ts";
import { createTableIndex } from "../table-index.ts";

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

export const getLsmWriteSpec: Handler<"getLsmWriteSpec"> = withoutLsm({ lsm_write_spec: null });

export const getLsmStats: Handler<"getLsmStats"> = withoutLsm({ lsm_stats: null });

export const getRteSpec: Handler<"getRteSpec"> = withoutLsm({ rte_spec: null });

export const getRteStats: Handler<"getRteStats"> = withoutLsm({ rte_stats: null });

/** Returns a handler for tables without rows in Lance's MemWAL, which queries would miss. Rejects others. */
function withoutLsm<Response>(response: Response) {
  return async (request: Omit<ReadRequest, "caller">, { rows }: Catalog, caller: AuthorizedCaller) => {
    const { result: hasLsm } = await rows.read("hasLsm", { ...request, caller }, {});
    if (hasLsm)
      throw new CatalogError("Unsupported", "the table has an LSM write spec, which this catalog does not support");
    return response;
  };
}
