import { setTimeout as sleep } from "node:timers/promises";
import { type Job, parseIdentifier, progressText, rowsDone } from "@tiltyard/protocol";
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
  let reported = "";
  for (;;) {
    const job = await describeJob(management, id).catch((error) => {
      const isAway = error instanceof CatalogRequestError && error.status >= 500;
      if (isAway || error instanceof CatalogConnectionError) return undefined;
      throw error;
    });
    const isStuck = job !== undefined && isUnclaimed(job) && Date.now() > deadline;
    const progressed = job === undefined ? "the catalog does not respond; retrying" : describeProgress(job);
    const text = isStuck ? `${progressed}: ${noRunner}` : progressed;
    if (text !== reported) progress.show(text);
    reported = text;
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
  const status = job.attempt > 1 ? `${job.status} (attempt ${job.attempt})` : job.status;
  const { rows_total: total } = job.progress;
  if (total === undefined) return [status, waitingFor(job)].filter((text) => text !== "").join(": ");
  return `${status} ${bar(rowsDone(job.progress), total)} ${progressText(job)}`;
}

/** Returns the reason why an open job waits, or why its latest attempt failed. */
export function waitingFor({ status, reason = "" }: Job): string {
  return status === "Queued" || status === "Running" ? reason : "";
}
