import { contracts } from "@tiltyard/protocol";
import { openTransaction } from "../domain/audit.ts";
import { branchOf } from "../domain/branch.ts";
import { parametersOf } from "../domain/parameters.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableBackfillColumns;

/** Opens the transaction only: the job runs on a Ray cluster, and whoever runs it moves the transaction on. */
export const alterTableBackfillColumns: Handler<typeof contract> = async (request, { store }, caller) => {
  const branch = branchOf(request);
  const transaction = openTransaction({
    contract,
    request,
    caller,
    objects: [request.id],
    status: "Queued",
    properties: parametersOf(request),
  });

  await store.write(async (session) => {
    const table = await requireTable(session, request.id);
    await requireBranch(session, table, branch);
    await transaction.record(session);
  });
  return { job_id: transaction.name };
};
