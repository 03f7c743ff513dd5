import { readVersions, requireBranch } from "../commits/read.ts";
import { branchOf } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const listTableVersions: Handler<"listTableVersions"> = async (request, catalog) => {
  const { read } = catalog.store;
  const branch = branchOf(request);
  const table = await requireTable(read, request.id);
  await requireBranch(catalog, table, branch);
  return readVersions(catalog, table, branch, request);
};
