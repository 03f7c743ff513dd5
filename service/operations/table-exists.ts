import { requireVersion } from "../commits/read.ts";
import { mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const tableExists: Handler<"tableExists"> = async (request, catalog) => {
  const table = await requireTable(catalog.store.read, request.id);
  if (request.version !== undefined) await requireVersion(catalog, table, mainBranch, request.version);
};
