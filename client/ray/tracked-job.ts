import type { AlterTransactionAction, TransactionStatus } from "@tiltyard/protocol";
import { defaultDelimiter, delimiterFor, messageOf, parseIdentifier } from "@tiltyard/protocol";
import pRetry from "p-retry";
import type { CatalogClient, ManagementClient } from "../catalog/documented-operations.ts";
import { CatalogRequestError, isUnavailable } from "../catalog/errors.ts";
import { suppressedError } from "../suppressed-error.ts";
import type { Job, JobDetails, JobRequest, JobStatus, JobsApi } from "./jobs.ts";

/** The data of a job in the catalog: a column to fill, or an existing transaction. */
export type Tracking =
  | {
      readonly catalog: CatalogClient;
      readonly management: ManagementClient;
      readonly table: readonly string[];
      readonly column: string;
    }
  | { readonly catalog: CatalogClient; readonly transactionId: string };

export interface TrackedJob {
  readonly job: Job;
  readonly transactionId: string;
  /** The result of the job after it is recorded in the catalog. */
  readonly done: Promise<JobDetails>;
  /**
   * Stops waiting for the end of the job. The transaction becomes Canceled for this reason, and `done` rejects. This is
   * for a job that does not stop on request, for example because Ray has no resources for it yet.
   */
  abandon(reason: string): void;
}

const outcomes: Readonly<Partial<Record<JobStatus, TransactionStatus>>> = {
  SUCCEEDED: "Succeeded",
  FAILED: "Failed",
  STOPPED: "Canceled",
};
/** The retries of calls, so that a restart of the catalog does not lose the work of hours. */
const retries = { retries: Infinity, minTimeout: 200, maxTimeout: 10_000, maxRetryTime: 120_000 };
const valueLengthMax = 1_000;

/**
 * Submits a job with a transaction in the catalog. The transaction is Queued before the submission, then Running, and
 * finally Succeeded, Failed or Canceled, and its properties contain the id of the job and the reason.
 */
export async function submitTracked(jobs: JobsApi, request: JobRequest, tracking: Tracking): Promise<TrackedJob> {
  const { job, transactionId } = await submitInTransaction(jobs, request, tracking);
  const alter = alterationsOf(tracking, transactionId);
  const abandoned = new AbortController();
  return { job, transactionId, done: finish(), abandon: (reason) => abandoned.abort(reason) };

  async function finish(): Promise<JobDetails> {
    const details = await job.wait({ signal: abandoned.signal }).catch(async (error) => {
      // The state of the job is unknown, but the transaction must not stay open forever.
      const [reason, outcome] = abandoned.signal.aborted
        ? [String(abandoned.signal.reason), "Canceled" as const]
        : [`the job was lost: ${error}`, "Failed" as const];
      await alter(property("reason", reason), status(outcome)).catch(() => {});
      throw error;
    });
    const outcome = outcomes[details.status] ?? "Failed";
    const reason = outcome === "Succeeded" ? [] : [property("reason", details.message ?? details.status)];
    await alter(...reason, status(outcome)).catch((cause) => {
      const what = `the job ${job.id} has ended as ${details.status}, but the catalog was not updated`;
      throw new Error(`${what}: set the transaction ${transactionId} to ${outcome}: ${cause.message}`, { cause });
    });
    return details;
  }
}

/**
 * Submits a job with a Running transaction whose properties contain the id of the job. The caller must set the final
 * status of the transaction.
 */
export async function submitInTransaction(
  jobs: JobsApi,
  request: JobRequest,
  tracking: Tracking,
): Promise<Pick<TrackedJob, "job" | "transactionId">> {
  const transactionId = await transactionOf(tracking);
  const alter = alterationsOf(tracking, transactionId);

  let job: Job;
  try {
    job = await jobs.submit({
      ...request,
      metadata: { ...request.metadata, tiltyard_transaction_id: transactionId },
    });
  } catch (error) {
    await alter(property("reason", String(error)), status("Failed")).catch((cause) => {
      const what = `the catalog was not updated. Set the transaction ${transactionId} to Failed: ${messageOf(cause)}`;
      throw suppressedError(new Error(what, { cause }), error, `${messageOf(error)}; and ${what}`);
    });
    throw error;
  }
  try {
    await alter(property("ray_job_id", job.id), status("Running"));
  } catch (error) {
    // A job that the catalog does not know or that has already ended there must not run.
    await job.stop().catch(() => {});
    throw error;
  }
  return { job, transactionId };
}

/** Returns the transaction of the caller or of a new job. */
async function transactionOf(tracking: Tracking): Promise<string> {
  if ("transactionId" in tracking) return tracking.transactionId;
  const { management, table, column } = tracking;
  // This job is not for a runner, because this process executes it.
  return (await management.openJob({ id: table, column })).job_id;
}

/**
 * Returns a function that alters a transaction and retries after a lost response. Setting a status or a property is
 * idempotent.
 */
function alterationsOf(tracking: Tracking, transactionId: string) {
  // The id of a job has the delimiter of the request that opened it.
  const delimiter = "table" in tracking ? delimiterFor(tracking.table) : defaultDelimiter;
  const id = parseIdentifier(transactionId, delimiter);
  return (...actions: AlterTransactionAction[]) =>
    pRetry(() => tracking.catalog.alterTransaction({ id, actions }), {
      ...retries,
      shouldRetry: ({ error }) => !(error instanceof CatalogRequestError) || isUnavailable(error),
    });
}

function status(value: TransactionStatus): AlterTransactionAction {
  return { setStatusAction: { status: value }, setPropertyAction: undefined, unsetPropertyAction: undefined };
}

function property(key: string, value: string): AlterTransactionAction {
  const setPropertyAction = { key, value: shorten(value), mode: undefined };
  return { setPropertyAction, setStatusAction: undefined, unsetPropertyAction: undefined };
}

/** Shortens a text but keeps its end. Ray's messages end with the output of the job, which ends with the error. */
function shorten(text: string): string {
  if (text.length <= valueLengthMax) return text;
  const [start, end] = [valueLengthMax / 4, (valueLengthMax * 3) / 4 - 1];
  return `${text.slice(0, start)}\u2026${text.slice(-end)}`;
}
