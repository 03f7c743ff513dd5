import { CatalogRequestError, type ManagementClient } from "@tiltyard/client";
import { type Job, openStatuses, parseIdentifier, type TransactionStatus } from "@tiltyard/protocol";
import { asText } from "./job-text.ts";

/** The operations that open jobs. */
const jobOperations: readonly string[] = [
  "AlterTableBackfillColumns",
  "RefreshMaterializedView",
  "CompactTable",
  "BuildTableIndex",
  "CleanUpTable",
];
/** The prefix of the reason of a waiting job. */
const waitsFor = "Waiting: ";

/** An open job of the catalog. */
export type OpenJob = Pick<
  Job,
  | "operation"
  | "objects"
  | "principal"
  | "parameters"
  | "attempt"
  | "started_at_millis"
  | "heartbeat"
  | "reason"
  | "platform"
> & {
  /** The id in the response to the request that opened the job. */
  readonly id: string;
};

/** The end of an attempt: its reason, and the last lines of its output if the platform has them. */
export interface AttemptEnd {
  readonly reason: string;
  readonly log_tail?: string;
}

/** The open jobs of a catalog and their attempts. */
export class CatalogJobs {
  readonly #management: ManagementClient;

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
      jobs.push(...page.jobs.filter(isForRunners).map(({ job_id: id, ...job }) => ({ id, ...job })));
      pageToken = page.page_token ?? undefined;
    } while (pageToken !== undefined);
    return jobs;
  }

  /** Reports whether a job waits for its first attempt. */
  async hasNew(): Promise<boolean> {
    return (await this.listOpen()).some(({ attempt }) => attempt === 0);
  }

  /** Returns the status of a job and whether its attempt has started; no status if the catalog does not know the job. */
  async stateOf(id: string): Promise<{ readonly status: TransactionStatus | undefined; readonly hasStarted: boolean }> {
    const described = await unlessMoved(() => this.#management.describeJob({ id: parseIdentifier(id) }));
    return { status: described?.job.status, hasStarted: described?.job.started_at_millis !== undefined };
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
  async beat({ id, attempt, reason }: OpenJob, lack: string | undefined): Promise<boolean> {
    const waiting = lack !== undefined ? waitFor(lack) : isWaiting(reason) ? "" : undefined;
    const request = { id: parseIdentifier(id), attempt, reason: waiting };
    return (await unlessMoved(() => this.#management.heartbeatJobAttempt(request))) !== undefined;
  }

  /** Records why a running job waits, or that it no longer waits. */
  async reportLack(job: OpenJob, lack: string | undefined): Promise<void> {
    const isKnown = lack === undefined ? !isWaiting(job.reason) : job.reason === waitFor(lack);
    if (!isKnown) await this.beat(job, lack);
  }

  /** Records the end of an attempt unless its end has a reason already. Another attempt may follow. */
  async end({ id, attempt, reason }: OpenJob, describe: () => Promise<AttemptEnd>): Promise<void> {
    if (reason !== undefined && !isWaiting(reason)) return;
    const request = { id: parseIdentifier(id), attempt, ...asTexts(await describe()) };
    await unlessMoved(() => this.#management.finishJobAttempt(request));
  }

  /** Fails a job with its last attempt, unless another client has changed its status. */
  async fail(id: string, attempt: number, end: AttemptEnd): Promise<void> {
    const request = { id: parseIdentifier(id), attempt, status: "Failed" as const, ...asTexts(end) };
    await unlessMoved(() => this.#management.finishJobAttempt(request));
  }
}

async function unlessMoved<Answer>(call: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof CatalogRequestError && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

/** Reports whether runners execute a job. A Running job without an attempt is executed by the client that set its status. */
function isForRunners({ operation, status, attempt }: Job): boolean {
  return jobOperations.includes(operation) && (status === "Queued" || attempt > 0);
}

/** Returns the reason of a waiting job. */
function waitFor(lack: string): string {
  return asText(`${waitsFor}${lack}`);
}

function asTexts({ reason, log_tail: log }: AttemptEnd): AttemptEnd {
  return { reason: asText(reason), ...(log !== undefined && { log_tail: asText(log) }) };
}

/** Reports whether the reason of a job is that of a wait. */
export function isWaiting(reason: string | undefined): boolean {
  return reason?.startsWith(waitsFor) === true;
}
