import { CatalogError, type managementContracts } from "@tiltyard/protocol";
import { prepareJob } from "../../domain/job.ts";
import { parametersIn } from "../../domain/job-summary.ts";
import { openOnce } from "../../domain/open-job.ts";
import { requireJob, requireTable } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

export const retryJob: Handler<typeof managementContracts.retryJob> = async (request, { store }, caller) => {
  const { status, operation, objects, properties } = await requireJob(store.read, request.id);
  if (status !== "Failed" && status !== "Canceled")
    throw new CatalogError(
      "ConcurrentModification",
      `the job is ${status}: only what has failed or was canceled is tried again`,
    );
  const contract = { operationId: operation };
  const again = prepareJob({ contract, request, caller, objects, properties: parametersIn(properties) });
  return { job_id: await openOnce(store, again, (session) => requireTable(session, objects[0] ?? [])) };
};
