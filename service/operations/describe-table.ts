import { CatalogError, type contracts, formatIdentifier } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import { requireVersion } from "../domain/versions.ts";
import { hasVersions } from "../store/versions.ts";
import type { Handler } from "./handler.ts";

export const describeTable: Handler<typeof contracts.describeTable> = async (request, catalog) => {
  const { store } = catalog;
  if (request.load_detailed_metadata || request.tag !== undefined)
    throw new CatalogError(
      "Unsupported",
      "this catalog does not open datasets: describe without load_detailed_metadata and tag, and open the table at its location",
    );
  const branch = branchOf(request);
  const table = await requireTable(store.read, request.id);
  await requireBranch(store.read, table, branch);
  if (request.version !== undefined) await requireVersion(catalog, table, branch, request.version);
  return {
    table: request.id.at(-1) ?? formatIdentifier(request.id),
    namespace: request.id.slice(0, -1),
    ...(request.version !== undefined && { version: request.version }),
    location: table.location,
    ...(request.with_table_uri && { table_uri: table.location }),
    properties: { ...table.properties },
    managed_versioning: true,
    ...(request.check_declared && { is_only_declared: !(await hasVersions(store.read, table.id)) }),
  };
};
