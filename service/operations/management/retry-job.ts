import { CatalogError } from "@tiltyard/protocol";
import { prepareJob } from "../../domain/job.ts";
import { presentTable } from "../../domain/job-table.ts";
import { openOnce } from "../../domain/open-job.ts";
import { requireJob } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

export const retryJob: Handler<"retryJob"> = async (request, { store }, caller) => {
  const job = await requireJob(store.read, request.id);
  const { status, operation, parameters } = job;
  if (status !== "Failed" && status !== "Canceled")
    throw new CatalogError(
      "ConcurrentModification",
      `the job is ${status}: only failed and canceled jobs can be retried`,
    );
  const contract = { operationId: operation };
  const table = await presentTable(store.read, job);
  const again = prepareJob({ contract, request, caller, table, parameters });
  return { job_id: await openOnce(store, again) };
};
