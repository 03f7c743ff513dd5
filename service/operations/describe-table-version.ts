import { requireBranch, requireVersion, toTableVersion } from "../commits/read.ts";
import { branchOf } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const describeTableVersion: Handler<"describeTableVersion"> = async (request, catalog) => {
  const { read } = catalog.store;
  const branch = branchOf(request);
  const table = await requireTable(read, request.id);
  await requireBranch(catalog, table, branch);
  const record = await requireVersion(catalog, table, branch, request.version);
  return { version: toTableVersion(table.location, record) };
};
