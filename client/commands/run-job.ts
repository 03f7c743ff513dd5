import { JobError } from "../ray/dashboard.ts";
import type { Job, JobDetails, JobRequest, JobsApi } from "../ray/jobs.ts";
import { submitTracked, type Tracking } from "../ray/tracked-job.ts";
import { exitCodes } from "./exit-codes.ts";
import type { JsonOption } from "./output.ts";

/** How long a job that was told to stop may take to do so. */
const stopTimeoutMs = 30_000;
/** Ray stops a job that has no place yet only when it gets one. */
const notStopped = "it was told to stop, and did not end in time";

/**
 * Submits a job, shows what it prints until it has ended, and sets the exit code by how it ended.
 * Aborting stops the job.
 */
export async function runJob(
  jobs: JobsApi,
  request: JobRequest,
  { json, tracking, signal }: JsonOption & { readonly tracking: Tracking | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const tracked = tracking === undefined ? undefined : await submitTracked(jobs, request, tracking);
  const job = tracked?.job ?? (await jobs.submit(request));
  process.stderr.write(`job ${job.id}${tracked ? `, transaction ${tracked.transactionId}` : ""}\n`);
  // Looked at below; until then it must not count as unhandled.
  tracked?.done.catch(() => {});
  try {
    // With --json standard output has one JSON value alone.
    await showLogs(job, json ? process.stderr : process.stdout, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    await job.stop();
    signal = AbortSignal.timeout(stopTimeoutMs);
    signal.addEventListener("abort", () => tracked?.abandon(notStopped));
  }
  const details = await (tracked?.done ?? job.wait({ signal })).catch((error) => {
    throw signal.aborted ? new JobError(`job ${job.id}: ${notStopped}`, { cause: error }) : error;
  });
  if (json) process.stdout.write(`${JSON.stringify({ ...details, transaction_id: tracked?.transactionId })}\n`);
  else process.stderr.write(`job ${job.id} ${details.status}${reasonOf(details)}\n`);
  process.exitCode = exitCodeOf(details);
}

export async function showLogs(job: Job, stream: NodeJS.WriteStream, signal: AbortSignal): Promise<void> {
  for await (const line of job.logs({ signal })) stream.write(`${line}\n`);
}

export function exitCodeOf({ status }: JobDetails): number {
  if (status === "FAILED") return exitCodes.jobFailed;
  return status === "STOPPED" ? exitCodes.jobStopped : exitCodes.ok;
}

/** Ray's message repeats the end of what the job printed, which was shown already. */
function reasonOf({ status, message }: JobDetails): string {
  const reason = message?.split("\n")[0]?.replace(/, last available logs.*/, "");
  return status === "SUCCEEDED" || !reason ? "" : `: ${reason}`;
}
