import { isOpen, parseIdentifier } from "@tiltyard/protocol";
import { cancel, writeJob } from "../domain/job.ts";
import { requireJob } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";
import { remoteState } from "./job-state.ts";

/** Cancels a job. For LanceDB's client, the cancellation of an ended job succeeds without an effect. */
export const cancelRemoteJob: Handler<"cancelRemoteJob"> = async (request, { store }, caller) => {
  const id = parseIdentifier(request.job_id, request.delimiter);
  const { status } = await store.write(async (session) => {
    const present = await requireJob(session, id);
    if (!isOpen(present)) return present;
    const canceled = cancel(present, caller);
    await writeJob(session, canceled);
    return canceled;
  });
  return { job_id: request.job_id, job_state: remoteState[status] };
};
