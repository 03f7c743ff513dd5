import { formatIdentifier } from "@tiltyard/protocol";
import { isWritten, requireBranch, requireVersion } from "../commits/read.ts";
import { branchOf } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import { vendCredentials } from "../domain/vending.ts";
import { versionAsked } from "../refs/tags.ts";
import type { VersionRequest } from "../rows/reader.ts";
import type { Catalog, Handler } from "./handler.ts";

export const describeTable: Handler<"describeTable"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const table = await requireTable(store.read, request.id);
  const at = await versionAsked(catalog, table, request);
  const branch = branchOf(at);
  await requireBranch(catalog, table, branch);
  if (at.version !== undefined) await requireVersion(catalog, table, branch, at.version);
  const isOnlyDeclared =
    request.check_declared || request.load_detailed_metadata ? !(await isWritten(catalog, table)) : undefined;
  return {
    table: request.id.at(-1) ?? formatIdentifier(request.id),
    namespace: request.id.slice(0, -1),
    ...(at.version !== undefined && { version: at.version }),
    location: table.location,
    ...((request.with_table_uri || request.load_detailed_metadata) && { table_uri: table.location }),
    ...(await vendCredentials(catalog, caller, request.id, table.location, request)),
    ...(isOnlyDeclared === false &&
      request.load_detailed_metadata &&
      (await detailsOf(catalog, { ...at, id: request.id, caller }))),
    properties: { ...table.properties },
    managed_versioning: true,
    ...(isOnlyDeclared !== undefined && { is_only_declared: isOnlyDeclared }),
  };
};

/** Returns the fields that need the dataset. A table that is only declared has none of them. */
async function detailsOf({ rows }: Catalog, at: VersionRequest) {
  const { version, result } = await rows.read("details", at, {});
  const { schema, summary } = result;
  return {
    version,
    schema,
    stats: {
      num_deleted_rows: Number(summary.total_deletion_file_rows ?? 0),
      num_fragments: Number(summary.total_fragments ?? 0),
    },
    metadata: { ...summary },
  };
}
