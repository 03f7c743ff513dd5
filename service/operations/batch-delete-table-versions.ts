import { contracts } from "@tiltyard/protocol";
import { deleteFirstOf, deleteRanges, readRanges } from "../commits/ranges.ts";
import { requireKnownBranch } from "../commits/read.ts";
import { prepareAudit } from "../domain/audit.ts";
import { branchOf } from "../domain/branch.ts";
import { requireRecordedBranch, requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.batchDeleteTableVersions;

export const batchDeleteTableVersions: Handler<"batchDeleteTableVersions"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const identifier = request.id;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });
  const branch = branchOf(request);
  const ranges = readRanges(request.ranges);
  await requireKnownBranch(catalog, await requireTable(store.read, identifier), branch);

  let deleted_count = 0;
  for (let isDone = false; !isDone; ) {
    const isFirst = deleted_count === 0;
    deleted_count += await store.write(async (session) => {
      const table = await requireTable(session, identifier);
      await requireRecordedBranch(session, table, branch);
      if (isFirst) await audit.record(session);
      const deleted = await deleteFirstOf(session, table.id, branch, ranges);
      isDone = deleted === 0;
      return isDone ? deleteRanges(session, table.id, branch, ranges) : deleted;
    });
  }
  return { context: { request_id: caller.requestId }, deleted_count, transaction_id: audit.name };
};
