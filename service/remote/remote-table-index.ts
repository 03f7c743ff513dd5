import { createTableIndex } from "../operations/create-table-index.ts";
import type { Handler } from "../operations/handler.ts";

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
