import { contracts } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { prepareJob } from "../domain/job.ts";
import { parametersOf } from "../domain/parameters.ts";
import { requireRecordedBranch, requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableBackfillColumns;

/** Opens a job only: it runs on a Ray cluster, and whoever runs it moves it on. */
export const alterTableBackfillColumns: Handler<typeof contract> = async (request, { store }, caller) => {
  const branch = branchOf(request);
  const job = prepareJob({
    contract,
    request,
    caller,
    objects: [request.id],
    properties: parametersOf(request),
  });

  await store.write(async (session) => {
    const table = await requireTable(session, request.id);
    await requireRecordedBranch(session, table, branch);
    await job.open(session);
  });
  return { job_id: job.name };
};
