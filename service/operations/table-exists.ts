import type { contracts } from "@tiltyard/protocol";
import { mainBranch } from "../domain/branch.ts";
import { requireTable, requireVersion } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const tableExists: Handler<typeof contracts.tableExists> = async (request, { store }) => {
  const table = await requireTable(store.read, request.id);
  if (request.version !== undefined) await requireVersion(store.read, table, mainBranch, request.version);
};
