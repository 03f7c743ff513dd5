import type { managementContracts } from "@tiltyard/protocol";
import { applyActions } from "../../domain/job.ts";
import { toJob } from "../../domain/job-summary.ts";
import { requireJob } from "../../domain/require.ts";
import { updateJob } from "../../store/jobs.ts";
import type { Handler } from "../handler.ts";

/** Moves the job only: what runs of it learns that by its heartbeat. One that is canceled already stays so. */
export const cancelJob: Handler<typeof managementContracts.cancelJob> = async (request, { store }, caller) => {
  const job = await store.write(async (session) => {
    const present = await requireJob(session, request.id);
    if (present.status === "Canceled") return present;
    const reason = `canceled by ${caller.principal.name}`;
    const applied = applyActions(present, [
      { setStatusAction: { status: "Canceled" }, setPropertyAction: undefined, unsetPropertyAction: undefined },
      {
        setPropertyAction: { key: "reason", value: reason, mode: undefined },
        setStatusAction: undefined,
        unsetPropertyAction: undefined,
      },
    ]);
    const canceled = { ...applied, updatedAtMillis: Date.now() };
    await updateJob(session, canceled);
    return canceled;
  });
  return { job: toJob(job, request.delimiter) };
};
