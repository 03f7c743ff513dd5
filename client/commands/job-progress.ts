import { setTimeout as sleep } from "node:timers/promises";
import { type Job, parseIdentifier } from "@tiltyard/protocol";
import type { ManagementClient } from "../catalog/documented-operations.ts";
import { CatalogConnectionError, CatalogRequestError } from "../catalog/errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { bar, type JsonOption, Progress, print } from "./output.ts";

const pollMs = 1_000;

export async function describeJob(management: ManagementClient, id: string): Promise<Job> {
  return (await management.describeJob({ id: parseIdentifier(id) })).job;
}

/** The time within which a runner normally claims a queued job. */
const runnerTimeoutMs = 5_000;
const noRunner =
  "no runner has claimed the job: is one connected, and below its limit of jobs? Start one: tiltyard runner --local";

/** Reports whether a job waits for a runner. Jobs of OpenJob are executed by the client that opened them. */
export function isUnclaimed({ status, attempt, operation, reason }: Job): boolean {
  return status === "Queued" && attempt === 0 && operation !== "OpenJob" && reason === undefined;
}

/** Follows a job until it ends, even across a restart of the catalog. */
export async function watchJob(
  management: ManagementClient,
  id: string,
  options: JsonOption,
  signal: AbortSignal,
): Promise<void> {
  using progress = new Progress();
  const deadline = Date.now() + runnerTimeoutMs;
  let told = "";
  for (;;) {
    const job = await describeJob(management, id).catch((error) => {
      const isAway = error instanceof CatalogRequestError && error.status >= 500;
      if (isAway || error instanceof CatalogConnectionError) return undefined;
      throw error;
    });
    const isStuck = job !== undefined && isUnclaimed(job) && Date.now() > deadline;
    const progressed = job === undefined ? "the catalog does not respond; retrying" : describeProgress(job);
    const text = isStuck ? `${progressed}: ${noRunner}` : progressed;
    if (text !== told) progress.tell(text);
    told = text;
    if (job !== undefined && job.status !== "Queued" && job.status !== "Running") {
      progress.end();
      print(options, job, `${job.status}${job.reason === undefined ? "" : `: ${job.reason}`}`);
      process.exitCode = exitCodeOf(job);
      return;
    }
    await sleep(pollMs, undefined, { signal });
  }
}

function exitCodeOf({ status }: Job): number {
  if (status === "Failed") return exitCodes.jobFailed;
  return status === "Canceled" ? exitCodes.jobStopped : exitCodes.ok;
}

/** Returns one line such as `Running [#####---------------] 250/1000 rows, 50 rows/s, 15 s left, 4 workers`. */
export function describeProgress(job: Job): string {
  const { rows_total: total, rows_per_second: rate, workers_active, workers_pending = 0 } = job.progress;
  const attempt = job.attempt > 1 ? ` (attempt ${job.attempt})` : "";
  if (total === undefined) return [`${job.status}${attempt}`, waitingFor(job)].filter((text) => text !== "").join(": ");
  const done = rowsDone(job.progress);
  const isRunning = job.status === "Running" && rate !== undefined && rate > 0;
  const left = isRunning ? [`${rate} rows/s`, `${durationOf((total - done) / rate)} left`] : [];
  const pending = workers_pending === 0 ? "" : ` and ${workers_pending} pending`;
  const isWorked = job.status === "Running" && workers_active !== undefined;
  const workers = isWorked ? [`${workers_active} workers${pending}`] : [];
  return `${job.status}${attempt} ${bar(done, total)} ${[countOf(job.progress), ...left, ...workers].join(", ")}`;
}

/** Returns the reason why an open job waits, or why its latest attempt failed. */
export function waitingFor({ status, reason = "" }: Job): string {
  return status === "Queued" || status === "Running" ? reason : "";
}

/** Returns a count such as `250/1000 rows`. A job whose rows all have values already has none to compute. */
export function countOf(progress: Job["progress"]): string {
  const { rows_total = 0 } = progress;
  return rows_total === 0 ? "no rows to compute" : `${rowsDone(progress)}/${rows_total} rows`;
}

/** Rows in checkpoints are computed, but not committed yet. */
function rowsDone({ rows_committed = 0, rows_checkpointed = 0, rows_total = 0 }: Job["progress"]): number {
  return Math.max(rows_committed, Math.min(rows_checkpointed, rows_total));
}

function durationOf(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
