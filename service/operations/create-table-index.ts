import { contracts } from "@tiltyard/protocol";
import type { IndexRequest } from "../rows/child/create-index.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

const contract = contracts.createTableIndex;

export const createTableIndex: Handler<"createTableIndex"> = (request, catalog, caller) =>
  createIndex(contract, request, catalog, caller);

/** Builds an index and responds when the index is complete. */
export async function createIndex(
  by: typeof contracts.createTableIndex | typeof contracts.createTableScalarIndex,
  request: IndexRequest,
  { rows }: Catalog,
  caller: AuthorizedCaller,
) {
  return (await rows.change("createIndex", { contract: by, request, caller }, request)).transaction;
}
