import { type Job, parseIdentifier } from "@tiltyard/protocol";
import { toJob } from "../domain/job-summary.ts";
import { requireJob } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";
import { remoteState } from "./job-state.ts";

export const describeRemoteJob: Handler<"describeRemoteJob"> = async (request, { store }) => {
  const { delimiter } = request;
  const job = toJob(await requireJob(store.read, parseIdentifier(request.job_id, delimiter)), delimiter);
  return {
    job_id: job.job_id,
    job_type: job.operation,
    job_state: remoteState[job.status],
    creation_ms: job.created_at_millis,
    spec: job.parameters,
    ...(job.status === "Succeeded" && { result: resultOf(job) }),
    ...(job.status === "Failed" && {
      failure: { phase: "execute", message: job.reason ?? "the job failed", retryable: false },
    }),
  };
};

/** Returns the result of a job with 0 for unknown numbers, because the client requires every number. */
function resultOf({ progress, result }: Job) {
  const { rows_committed = 0, rows_total = rows_committed, rows_skipped_on_error = 0 } = progress;
  const { rows_assigned = rows_committed, source_version = 0, published_version } = result;
  return {
    rows_assigned,
    rows_failed: rows_skipped_on_error,
    rows_remaining: rows_total - rows_committed,
    source_version,
    ...(published_version !== undefined && { published_version }),
  };
}
