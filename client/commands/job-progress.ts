import { setTimeout as sleep } from "node:timers/promises";
import {
  durationText,
  isOfClient,
  type Job,
  type JobSummary,
  progressText,
  queueText,
  rowsDone,
  stallText,
} from "@tiltyard/protocol";
import type { ManagementClient } from "../catalog/documented-operations.ts";
import { CatalogConnectionError, CatalogRequestError, isUnavailable } from "../catalog/errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { readIdentifier } from "./identifier.ts";
import { bar, type JsonOption, log, Progress, print } from "./output.ts";

const pollMs = 1_000;

export async function describeJob(management: ManagementClient, id: string): Promise<Job> {
  return (await management.describeJob({ id: readIdentifier(id) })).job;
}

/** The time within which a runner normally claims a queued job. */
const runnerTimeoutMs = 5_000;
const noRunner =
  "no runner has claimed the job: is one connected, and below its limit of jobs? Start one: tiltyard runner --local";

/** Reports whether a job waits for a runner. */
export function isUnclaimed(job: JobSummary): boolean {
  return job.status === "Queued" && job.attempt === 0 && !isOfClient(job) && job.reason === undefined;
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
  let reported = "";
  let isKnown = false;
  for (;;) {
    const job = await describeJob(management, id).catch((error) => {
      // The first response shows whether the URL is that of a catalog.
      if (isKnown ? isUnavailable(error) : isOutage(error)) return undefined;
      throw error;
    });
    isKnown ||= job !== undefined;
    const isStuck = job !== undefined && isUnclaimed(job) && Date.now() > deadline;
    const progressed = job === undefined ? "the catalog does not respond; retrying" : describeProgress(job);
    const text = isStuck ? `${progressed}: ${noRunner}` : progressed;
    if (text !== reported) progress.show(text);
    reported = text;
    if (job !== undefined && job.status !== "Queued" && job.status !== "Running") {
      progress.end();
      print(options, job, `${job.status}${job.reason === undefined ? "" : `: ${job.reason}`}`);
      log(ending(job));
      process.exitCode = exitCodeOf(job);
      return;
    }
    await sleep(pollMs, undefined, { signal });
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof CatalogConnectionError || (error instanceof CatalogRequestError && error.status >= 500);
}

/** Returns a summary of an ended job, and the commands that show why rows or the job failed. */
function ending({ job_id: id, status, attempt, progress, ...job }: Job): string {
  const { created_at_millis: opened, started_at_millis: started = opened, ended_at_millis: ended = started } = job;
  const took = `took ${durationText((ended - started) / 1_000)}${attempt > 1 ? ` in attempt ${attempt}` : ""}`;
  const { rows_skipped_on_error: skipped = 0 } = progress;
  const rows = skipped > 0 ? `; skipped ${skipped.toLocaleString("en")} rows with errors` : "";
  const isClean = skipped === 0 && status !== "Failed";
  return `${took}${rows}${isClean ? "" : `. See: tiltyard jobs errors '${id}', tiltyard jobs logs '${id}'`}`;
}

function exitCodeOf({ status }: Job): number {
  if (status === "Failed") return exitCodes.jobFailed;
  return status === "Canceled" ? exitCodes.jobStopped : exitCodes.ok;
}

/** Returns one line such as `Running [#####---------------] 250/1,000 rows, 50 rows/s, 15 s left, 4 workers`. */
export function describeProgress(job: Job): string {
  const status = job.attempt > 1 ? `${job.status} (attempt ${job.attempt})` : job.status;
  const { rows_total: total } = job.progress;
  const stall = stallText(job);
  if (total === undefined)
    return [status, waitingFor(job) || stall || queueText(job)].filter((text) => text !== "").join(": ");
  return `${status} ${bar(rowsDone(job.progress), total)} ${progressText(job)}${stall && `; ${stall}`}`;
}

/** Returns the reason why an open job waits, or why its latest attempt failed. */
export function waitingFor({ status, reason = "" }: JobSummary): string {
  return status === "Queued" || status === "Running" ? reason : "";
}
