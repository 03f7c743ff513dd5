import { CatalogError, type contracts, formatIdentifier } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import { versionAsked } from "../domain/tags.ts";
import { vendCredentials } from "../domain/vending.ts";
import { requireVersion } from "../domain/versions.ts";
import { parseLocation } from "../storage/location.ts";
import { hasVersions } from "../store/versions.ts";
import type { Handler } from "./handler.ts";

export const describeTable: Handler<typeof contracts.describeTable> = async (request, catalog, caller) => {
  const { store } = catalog;
  if (request.load_detailed_metadata)
    throw new CatalogError(
      "Unsupported",
      "this catalog does not open datasets: describe without load_detailed_metadata, and open the table at its location",
    );
  const table = await requireTable(store.read, request.id);
  const at = await versionAsked(catalog, table, request);
  const branch = branchOf(at);
  await requireBranch(store.read, table, branch);
  if (at.version !== undefined) await requireVersion(catalog, table, branch, at.version);
  return {
    table: request.id.at(-1) ?? formatIdentifier(request.id),
    namespace: request.id.slice(0, -1),
    ...(at.version !== undefined && { version: at.version }),
    location: table.location,
    ...(request.with_table_uri && { table_uri: table.location }),
    ...(await vendCredentials(catalog, caller, request.id, parseLocation(table.location), request)),
    properties: { ...table.properties },
    managed_versioning: true,
    ...(request.check_declared && { is_only_declared: !(await hasVersions(store.read, table.id)) }),
  };
};
