import { CatalogRequestError, isUnavailable, type ManagementClient } from "@tiltyard/client";
import { durationText, isOpen, type Job, type JobSummary, openStatuses, parseIdentifier } from "@tiltyard/protocol";
import { asText } from "./job-text.ts";

/** The operations that open jobs. */
const jobOperations: readonly string[] = [
  "AlterTableBackfillColumns",
  "RefreshMaterializedView",
  "CompactTable",
  "BuildTableIndex",
  "CleanUpTable",
  "CreateFunction",
];
/** The number of the latest jobs that are compared with the previous list. */
const latestJobs = 10;
/** The number of ended jobs that a starting runner checks. */
const endedJobs = 100;
/** The prefix of the reason of a waiting job. */
const waitsFor = "Waiting: ";

/** An open job of the catalog. */
export type OpenJob = Pick<
  JobSummary,
  | "operation"
  | "objects"
  | "principal"
  | "priority"
  | "attempt"
  | "interruptions"
  | "started_at_millis"
  | "heartbeat"
  | "reason"
  | "platform"
> & {
  /** The id in the response to the request that opened the job. */
  readonly id: string;
};

/** A job with the parameters that its start needs. */
export type StartableJob = OpenJob & Pick<Job, "parameters">;

/** The end of an attempt: its reason, and the last lines of its output if the platform has them. */
export interface AttemptEnd {
  readonly reason: string;
  readonly log_tail?: string;
}

/** The open jobs of a catalog and their attempts. */
export class CatalogJobs {
  readonly #management: ManagementClient;
  /** The jobs of the previous list. */
  #listed: ReadonlySet<string> = new Set();

  constructor(management: ManagementClient) {
    this.#management = management;
  }

  /** Lists the open jobs, the oldest first. @throws CatalogRequestError, CatalogConnectionError */
  async listOpen(): Promise<readonly OpenJob[]> {
    const jobs: OpenJob[] = [];
    let pageToken: string | undefined;
    do {
      const page = await this.#management.listJobs({
        status: [...openStatuses],
        ascending: true,
        ...(pageToken !== undefined && { page_token: pageToken }),
      });
      jobs.push(...page.jobs.filter(isForRunners).map(toOpenJob));
      pageToken = page.page_token ?? undefined;
    } while (pageToken !== undefined);
    this.#listed = new Set(jobs.map(({ id }) => id));
    return jobs;
  }

  /** Reports whether one of the latest jobs is not in the previous list. A job that waits for its turn is. */
  async hasNew(): Promise<boolean> {
    const { jobs } = await this.#management.listJobs({ status: ["Queued"], limit: latestJobs });
    return jobs.some((job) => isForRunners(job) && !this.#listed.has(job.job_id));
  }

  /** Returns the attempts of the latest failed and canceled jobs that have not started, by the ids of their jobs. */
  async listUnstarted(): Promise<readonly (readonly [string, number])[]> {
    const { jobs } = await this.#management.listJobs({ status: ["Failed", "Canceled"], limit: endedJobs });
    return jobs.flatMap(({ job_id: id, operation, attempt, started_at_millis: started }) =>
      jobOperations.includes(operation) && attempt > 0 && started === undefined ? [[id, attempt] as const] : [],
    );
  }

  /** Returns a job with its parameters, which lists do not contain; undefined if the job does not exist. */
  async startable(job: OpenJob): Promise<StartableJob | undefined> {
    const described = await unlessMoved(() => this.#management.describeJob({ id: parseIdentifier(job.id) }));
    return described && { ...job, parameters: described.job.parameters };
  }

  /**
   * Returns why no attempt at a job may run, such as `Canceled`, `paused` or `gone`, undefined if one may; and whether its
   * latest attempt has started.
   */
  async stateOf(id: string): Promise<{ readonly stopped: string | undefined; readonly hasStarted: boolean }> {
    const { job } = (await unlessMoved(() => this.#management.describeJob({ id: parseIdentifier(id) }))) ?? {};
    const hasStarted = job?.started_at_millis !== undefined;
    if (job === undefined || !isOpen(job)) return { stopped: job?.status ?? "gone", hasStarted };
    return { stopped: job.paused_at_millis === undefined ? undefined : "paused", hasStarted };
  }

  /** Returns how a job ended and the duration of its latest attempt; undefined for an open or unknown job. */
  async outcomeOf(id: string): Promise<string | undefined> {
    const described = await unlessMoved(() => this.#management.describeJob({ id: parseIdentifier(id) }));
    const { status, reason, started_at_millis: started, ended_at_millis: ended } = described?.job ?? {};
    if (ended === undefined) return undefined;
    const took = started === undefined ? "before it started" : `after ${durationText((ended - started) / 1_000)}`;
    return `${status} ${took}${reason === undefined ? "" : `: ${reason.split("\n", 1)[0]}`}`;
  }

  /**
   * Claims the next attempt of a job after the latest one, which must still be the latest.
   *
   * @returns Whether the attempt was claimed. Only one of several runners succeeds. A job that cannot run
   * any more fails instead.
   */
  async claimNext({ id, attempt: after }: OpenJob, platform: OpenJob["platform"]): Promise<boolean> {
    const request = { id: parseIdentifier(id), after, platform };
    const claimed = await unlessMoved(() => this.#management.claimJobAttempt(request));
    return claimed !== undefined && claimed.job.attempt > after;
  }

  /** Releases an attempt that did not start. @returns False if it started. */
  async release(id: string, attempt: number): Promise<boolean> {
    const request = { id: parseIdentifier(id), attempt };
    return (await unlessMoved(() => this.#management.releaseJobAttempt(request))) !== undefined;
  }

  /** Creates the key of an attempt. @returns undefined if another client has changed the job's status. */
  createKey(id: string, attempt: number): Promise<string | undefined> {
    return unlessMoved(async () => (await this.#management.createJobKey({ id: parseIdentifier(id), attempt })).key);
  }

  /**
   * Sends a heartbeat for an attempt that has not started, with the reason why it waits. @returns False if it was
   * superseded.
   */
  async heartbeat({ id, attempt, reason }: OpenJob, waitReason: string | undefined): Promise<boolean> {
    const waiting = waitReason !== undefined ? waitFor(waitReason) : isWaiting(reason) ? "" : undefined;
    const request = { id: parseIdentifier(id), attempt, reason: waiting };
    return (await unlessMoved(() => this.#management.heartbeatJobAttempt(request))) !== undefined;
  }

  /** Records why a running job waits, or that it no longer waits. */
  async reportWaitReason(job: OpenJob, waitReason: string | undefined): Promise<void> {
    const isKnown = waitReason === undefined ? !isWaiting(job.reason) : job.reason === waitFor(waitReason);
    if (!isKnown) await this.heartbeat(job, waitReason);
  }

  /** Records the end of an attempt unless its end has a reason already. Another attempt may follow. */
  async end({ id, attempt, reason }: OpenJob, describe: () => Promise<AttemptEnd>): Promise<void> {
    if (reason !== undefined && !isWaiting(reason)) return;
    const request = { id: parseIdentifier(id), attempt, ...asTexts(await describe()) };
    await unlessMoved(() => this.#management.finishJobAttempt(request));
  }

  /** Ends an attempt of a stopped runner, so that it does not count and another one may follow at once. */
  async handOver({ id, attempt, started_at_millis: started }: OpenJob): Promise<void> {
    if (started === undefined) return void (await this.release(id, attempt));
    await this.interrupt({ id, attempt }, "the runner stopped");
  }

  /** Ends an attempt that does not count. Another one may follow at once. */
  async interrupt({ id, attempt }: Pick<OpenJob, "id" | "attempt">, reason: string): Promise<void> {
    const request = { id: parseIdentifier(id), attempt, interrupted: true, reason: asText(reason) };
    await unlessMoved(() => this.#management.finishJobAttempt(request));
  }

  /** Fails a job with its last attempt, unless another client has changed its status. */
  async fail(id: string, attempt: number, end: AttemptEnd): Promise<void> {
    const request = { id: parseIdentifier(id), attempt, status: "Failed" as const, ...asTexts(end) };
    await unlessMoved(() => this.#management.finishJobAttempt(request));
  }
}

/** Calls the catalog. @returns undefined if another client has changed or dropped the job. */
async function unlessMoved<Answer>(call: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await call();
  } catch (error) {
    const isOfCatalog = error instanceof CatalogRequestError && !isUnavailable(error);
    if (isOfCatalog && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

function toOpenJob({ job_id: id, ...job }: JobSummary): OpenJob {
  const { operation, objects, principal, priority, attempt, interruptions } = job;
  const { started_at_millis, heartbeat, reason, platform } = job;
  const latest = { attempt, interruptions, started_at_millis, heartbeat, reason, platform };
  return { id, operation, objects, principal, priority, ...latest };
}

/** Reports whether runners execute a job. A Running job without an attempt is executed by the client that set its status. */
function isForRunners({ operation, status, attempt, paused_at_millis: paused }: JobSummary): boolean {
  return jobOperations.includes(operation) && (status === "Queued" || attempt > 0) && paused === undefined;
}

/** Returns the reason of a waiting job. */
function waitFor(waitReason: string): string {
  return asText(`${waitsFor}${waitReason}`);
}

function asTexts({ reason, log_tail: log }: AttemptEnd): AttemptEnd {
  return { reason: asText(reason), ...(log !== undefined && { log_tail: asText(log) }) };
}

/** Reports whether the reason of a job is that of a wait. */
export function isWaiting(reason: string | undefined): boolean {
  return reason?.startsWith(waitsFor) === true;
}
