import { formatIdentifier, type remoteContracts } from "@tiltyard/protocol";
import { requireVersion } from "../commits/read.ts";
import { mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";

/** LanceDB's client opens no table without its version. */
export const describeRemoteTable: Handler<typeof remoteContracts.describeRemoteTable> = async (request, catalog) => {
  const table = await requireTable(catalog.store.read, request.id);
  const { version } = await requireVersion(catalog, table, mainBranch, request.version);
  return { table: formatIdentifier(request.id, request.delimiter), version, location: table.location };
};
