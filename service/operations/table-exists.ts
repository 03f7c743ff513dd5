import type { contracts } from "@tiltyard/protocol";
import { mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import { requireVersion } from "../domain/versions.ts";
import type { Handler } from "./handler.ts";

export const tableExists: Handler<typeof contracts.tableExists> = async (request, catalog) => {
  const table = await requireTable(catalog.store.read, request.id);
  if (request.version !== undefined) await requireVersion(catalog, table, mainBranch, request.version);
};
