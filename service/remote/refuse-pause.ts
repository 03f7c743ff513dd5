import { CatalogError, parseIdentifier } from "@tiltyard/protocol";
import { requireJob } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";

/** Rejects a pause. Cancel and retry have the same effect, because a retried job resumes from its checkpoints. */
export const refusePause: Handler<"pauseRemoteJob" | "resumeRemoteJob"> = async (request, { store }) => {
  await requireJob(store.read, parseIdentifier(request.job_id, request.delimiter));
  throw new CatalogError(
    "Unsupported",
    "jobs cannot be paused: cancel the job and retry it later (RetryJob). It continues with the unfilled rows",
  );
};
