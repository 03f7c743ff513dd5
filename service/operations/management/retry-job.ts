import { CatalogError, type managementContracts } from "@tiltyard/protocol";
import { prepareJob } from "../../domain/job.ts";
import { openOnce } from "../../domain/open-job.ts";
import { parametersIn } from "../../domain/parameters.ts";
import { requireJob, requireTable } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

export const retryJob: Handler<typeof managementContracts.retryJob> = async (request, { store }, caller) => {
  const job = await requireJob(store.read, request.id);
  const { status, operation, objects } = job;
  if (status !== "Failed" && status !== "Canceled")
    throw new CatalogError(
      "ConcurrentModification",
      `the job is ${status}: only what has failed or was canceled is tried again`,
    );
  const contract = { operationId: operation };
  const again = prepareJob({ contract, request, caller, objects, properties: parametersIn(job) });
  return { job_id: await openOnce(store, again, (session) => requireTable(session, objects[0] ?? [])) };
};
