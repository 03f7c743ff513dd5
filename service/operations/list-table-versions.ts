import type { contracts } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import { readVersions } from "../domain/versions.ts";
import type { Handler } from "./handler.ts";

export const listTableVersions: Handler<typeof contracts.listTableVersions> = async (request, catalog) => {
  const { read } = catalog.store;
  const branch = branchOf(request);
  const table = await requireTable(read, request.id);
  await requireBranch(read, table, branch);
  return readVersions(catalog, table, branch, request);
};
