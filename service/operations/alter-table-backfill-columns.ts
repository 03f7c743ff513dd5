import { contracts } from "@tiltyard/protocol";
import { openTransaction } from "../domain/audit.ts";
import { branchOf } from "../domain/branch.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableBackfillColumns;

/** Opens the transaction only: the job runs on a Ray cluster, and whoever runs it moves the transaction on. */
export const alterTableBackfillColumns: Handler<typeof contract> = async (request, { store }, caller) => {
  const { id: identifier, identity: _, context: __, delimiter: ___, ...parameters } = request;
  const branch = branchOf(request);
  const transaction = openTransaction({
    contract,
    request,
    caller,
    objects: [identifier],
    status: "Queued",
    properties: asProperties(parameters),
  });

  await store.write(async (session) => {
    const table = await requireTable(session, identifier);
    await requireBranch(session, table, branch);
    await transaction.record(session);
  });
  return { job_id: transaction.name };
};

function asProperties(parameters: Readonly<Record<string, string | number | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
  );
}
