import type { AlterTransactionAction, TransactionStatus } from "@tiltyard/protocol";
import { messageOf, parseIdentifier } from "@tiltyard/protocol";
import pRetry from "p-retry";
import type { CatalogClient, ManagementClient } from "../catalog/catalog-client.ts";
import { CatalogRequestError } from "../catalog/errors.ts";
import { suppressedError } from "../suppressed-error.ts";
import type { Job, JobDetails, JobRequest, JobStatus, JobsApi } from "./jobs.ts";

/** What the catalog is told about a job: a column that it fills, or a transaction that is there already. */
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
  /** How the job ended, when the catalog knows it too. */
  readonly done: Promise<JobDetails>;
  /**
   * Waits for the end no longer: the transaction is Canceled for this reason, and `done` rejects.
   * For a job that was told to stop and does not, e.g. because Ray has no place for it yet.
   */
  abandon(reason: string): void;
}

const outcomes: Readonly<Partial<Record<JobStatus, TransactionStatus>>> = {
  SUCCEEDED: "Succeeded",
  FAILED: "Failed",
  STOPPED: "Canceled",
};
/** The work of hours is not lost to a restart of the catalog. */
const retries = { retries: Infinity, minTimeout: 200, maxTimeout: 10_000, maxRetryTime: 120_000 };
const valueLengthMax = 1_000;

/**
 * Submits a job whose transaction in the catalog goes with it: Queued before it is submitted,
 * Running, then Succeeded, Failed or Canceled, with the job's id and the reason in its properties.
 */
export async function submitTracked(jobs: JobsApi, request: JobRequest, tracking: Tracking): Promise<TrackedJob> {
  const { job, transactionId } = await submitInTransaction(jobs, request, tracking);
  const alter = (...actions: AlterTransactionAction[]) => alterTransaction(tracking.catalog, transactionId, actions);
  const abandoned = new AbortController();
  return { job, transactionId, done: finish(), abandon: (reason) => abandoned.abort(reason) };

  async function finish(): Promise<JobDetails> {
    const details = await job.wait({ signal: abandoned.signal }).catch(async (error) => {
      // Whether the job goes on is unknown here, and the transaction must not stay open for ever.
      const [reason, outcome] = abandoned.signal.aborted
        ? [String(abandoned.signal.reason), "Canceled" as const]
        : [`the job was lost: ${error}`, "Failed" as const];
      await alter(property("reason", reason), status(outcome)).catch(() => {});
      throw error;
    });
    const outcome = outcomes[details.status] ?? "Failed";
    const reason = outcome === "Succeeded" ? [] : [property("reason", details.message ?? details.status)];
    await alter(...reason, status(outcome)).catch((cause) => {
      const what = `the job ${job.id} has ended as ${details.status}, but the catalog was not told`;
      throw new Error(`${what}: set the transaction ${transactionId} to ${outcome}: ${cause.message}`, { cause });
    });
    return details;
  }
}

/**
 * Submits a job whose transaction is Running then, with the job's id in its properties. The caller
 * that sees the job end sets the transaction's status.
 */
export async function submitInTransaction(
  jobs: JobsApi,
  request: JobRequest,
  tracking: Tracking,
): Promise<Pick<TrackedJob, "job" | "transactionId">> {
  const { catalog } = tracking;
  const transactionId = await transactionOf(tracking);
  const alter = (...actions: AlterTransactionAction[]) => alterTransaction(catalog, transactionId, actions);

  let job: Job;
  try {
    job = await jobs.submit({
      ...request,
      metadata: { ...request.metadata, tiltyard_transaction_id: transactionId },
    });
  } catch (error) {
    await alter(property("reason", String(error)), status("Failed")).catch((cause) => {
      const what = `the catalog was not told: set the transaction ${transactionId} to Failed: ${messageOf(cause)}`;
      throw suppressedError(new Error(what, { cause }), error, `${messageOf(error)}; and ${what}`);
    });
    throw error;
  }
  try {
    await alter(property("ray_job_id", job.id), status("Running"));
  } catch (error) {
    // What the catalog does not know of, or has ended already, must not run.
    await job.stop().catch(() => {});
    throw error;
  }
  return { job, transactionId };
}

/** The caller's transaction, or that of a new job. */
async function transactionOf(tracking: Tracking): Promise<string> {
  if ("transactionId" in tracking) return tracking.transactionId;
  const { management, table, column } = tracking;
  // Not one for a runner: this process runs it.
  return (await management.openJob({ id: table, column })).job_id;
}

/**
 * Alters a transaction, and retries when the answer was lost: setting a status or a property is idempotent.
 */
async function alterTransaction(catalog: CatalogClient, id: string, actions: AlterTransactionAction[]): Promise<void> {
  await pRetry(() => catalog.alterTransaction({ id: parseIdentifier(id), actions }), {
    ...retries,
    shouldRetry: ({ error }) => !(error instanceof CatalogRequestError && error.status < 500),
  });
}

function status(value: TransactionStatus): AlterTransactionAction {
  return { setStatusAction: { status: value }, setPropertyAction: undefined, unsetPropertyAction: undefined };
}

function property(key: string, value: string): AlterTransactionAction {
  const setPropertyAction = { key, value: shorten(value), mode: undefined };
  return { setPropertyAction, setStatusAction: undefined, unsetPropertyAction: undefined };
}

/** Ray's messages end with the output of the job, and that with the error: of a long one the end tells most. */
function shorten(text: string): string {
  if (text.length <= valueLengthMax) return text;
  const [start, end] = [valueLengthMax / 4, (valueLengthMax * 3) / 4 - 1];
  return `${text.slice(0, start)}\u2026${text.slice(-end)}`;
}
