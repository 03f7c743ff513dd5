import { JobError } from "../ray/dashboard.ts";
import type { Job, JobDetails, JobRequest, JobsApi } from "../ray/jobs.ts";
import { submitTracked, type Tracking } from "../ray/tracked-job.ts";
import { exitCodes } from "./exit-codes.ts";
import { type JsonOption, log, print } from "./output.ts";

/** The time within which a job should end after a stop request. */
const stopTimeoutMs = 30_000;
/** The message about a job that did not end. Ray stops a pending job only when it gets resources. */
const notStopped = "it did not stop in time";

/** Submits a job, prints its output until it ends, and sets the exit code depending on its result. An abort stops the job. */
export async function runJob(
  jobs: JobsApi,
  request: JobRequest,
  { json, tracking, signal }: JsonOption & { readonly tracking: Tracking | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const tracked = tracking === undefined ? undefined : await submitTracked(jobs, request, tracking);
  const job = tracked?.job ?? (await jobs.submit(request));
  log(`job ${job.id}${tracked ? `, transaction ${tracked.transactionId}` : ""}`);
  // The error is handled below. Until then, it must not count as unhandled.
  tracked?.done.catch(() => {});
  try {
    // With --json, standard output contains only a single JSON value.
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
  if (json) print({ json }, { ...details, transaction_id: tracked?.transactionId }, "");
  else log(`job ${job.id} ${details.status}${reasonOf(details)}`);
  process.exitCode = exitCodeOf(details);
}

export async function showLogs(job: Job, stream: NodeJS.WriteStream, signal: AbortSignal): Promise<void> {
  for await (const line of job.logs({ signal })) stream.write(`${line}\n`);
}

export function exitCodeOf({ status }: JobDetails): number {
  if (status === "FAILED") return exitCodes.jobFailed;
  return status === "STOPPED" ? exitCodes.jobStopped : exitCodes.ok;
}

/** Returns the reason of a failure. Ray's message repeats the end of the output, which was already printed. */
function reasonOf({ status, message }: JobDetails): string {
  const reason = message?.split("\n")[0]?.replace(/, last available logs.*/, "");
  return status === "SUCCEEDED" || !reason ? "" : `: ${reason}`;
}
