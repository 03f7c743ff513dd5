import type { contracts } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { requireBranch, requireTable, requireVersion } from "../domain/require.ts";
import { toTableVersion } from "../domain/versions.ts";
import type { Handler } from "./handler.ts";

export const describeTableVersion: Handler<typeof contracts.describeTableVersion> = async (
  request,
  { store, finisher },
) => {
  const branch = branchOf(request);
  const table = await requireTable(store.read, request.id);
  await requireBranch(store.read, table, branch);
  const record = await requireVersion(store.read, table, branch, request.version);
  return { version: toTableVersion(table.location, await finisher.finishVersion(table.location, record)) };
};
