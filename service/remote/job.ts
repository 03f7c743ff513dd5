import {
  CatalogError,
  formatIdentifier,
  isOpen,
  type Job,
  parseIdentifier,
  type RemoteJobState,
  type TransactionStatus,
} from "@tiltyard/protocol";
import { cancel, toJob, writeJob } from "../domain/job.ts";
import { requireJob } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";
import { listJobs } from "../operations/management/job.ts";
import { rowsAsStream } from "../rows/arrow/arrow-rows.ts";
import { type AttemptRecord, listAttempts } from "../store/job-attempts.ts";
import type { JobRecord } from "../store/jobs.ts";

export const listRemoteJobs: Handler<"listRemoteJobs"> = async (request, catalog, caller) => {
  const { jobs, page_token } = await listJobs(request, catalog, caller);
  return {
    jobs: jobs.map(({ job_id, objects, operation, status, created_at_millis }) => ({
      job_id,
      table: formatIdentifier((objects[0] ?? []).slice(request.id.length), request.delimiter),
      job_type: operation,
      state: remoteState[status],
      created_at_millis,
    })),
    page_token,
  };
};

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
    published_version,
  };
}

/** Cancels a job. For LanceDB's client, the cancellation of an ended job succeeds without an effect. */
export const cancelRemoteJob: Handler<"cancelRemoteJob"> = async (request, { store }, caller) => {
  const id = parseIdentifier(request.job_id, request.delimiter);
  const { status } = await store.write(async (session) => {
    const present = await requireJob(session, id);
    if (!isOpen(present)) return present;
    const canceled = cancel(present, caller);
    await writeJob(session, canceled);
    return canceled;
  });
  return { job_id: request.job_id, job_state: remoteState[status] };
};

/** Rejects a pause. Cancel and retry have the same effect, because a retried job resumes from its checkpoints. */
export const refusePause: Handler<"pauseRemoteJob" | "resumeRemoteJob"> = async (request, { store }) => {
  await requireJob(store.read, parseIdentifier(request.job_id, request.delimiter));
  throw new CatalogError(
    "Unsupported",
    "jobs cannot be paused: cancel the job and retry it later (RetryJob). It continues with the unfilled rows",
  );
};

/** The columns in LanceDB's documentation, with the time of each event. */
const columns = {
  state: "text",
  updated_by: "text",
  emitted_from: "text",
  emitted_by: "text",
  claim_entity: "text",
  rows_processed: "integer",
  timestamp_millis: "integer",
} as const;
type Event = { readonly [Name in keyof typeof columns]: string | number };

const filterPattern = /^\s*(\w+)\s*=\s*'((?:[^']|'')*)'\s*$/;

/** Lists the events of a job: its opening, its attempts and its end. */
export const queryRemoteJobEvents: Handler<"queryRemoteJobEvents"> = async (
  { job_id, delimiter, limit, filter },
  { store },
) => {
  const isMeant = readFilter(filter);
  const job = await requireJob(store.read, parseIdentifier(job_id, delimiter));
  const events = eventsOf(job, await listAttempts(store.read, job.id));
  return rowsAsStream(columns, events.filter(isMeant).slice(0, limit));
};

function eventsOf(job: JobRecord, attempts: readonly AttemptRecord[]): readonly Event[] {
  const { status, progress, principal } = job;
  const opened = {
    ...{ state: "queued", updated_by: principal, emitted_from: placeOf(job), emitted_by: principal },
    ...{ claim_entity: "", rows_processed: 0, timestamp_millis: job.createdAtMillis },
  };
  const runner = { ...opened, updated_by: "runner", emitted_by: "runner" };
  const claims = attempts.map((attempt) => ({
    ...runner,
    ...{ state: "claim", emitted_from: placeOf(attempt), claim_entity: `attempt ${attempt.number}` },
    rows_processed: attempt.number === job.attempt ? (progress.rows_committed ?? 0) : 0,
    timestamp_millis: attempt.claimedAtMillis,
  }));
  const last = claims.at(-1) ?? runner;
  const ended = { ...last, state: remoteState[status].toLowerCase(), timestamp_millis: job.endedAtMillis ?? 0 };
  return [opened, ...claims, ...(isOpen(job) ? [] : [ended])];
}

function placeOf({ platform }: Pick<AttemptRecord, "platform">): string {
  return platform.ray_job ?? platform.ray_address ?? "";
}

/** Parses a filter. @throws CatalogError InvalidInput */
function readFilter(filter: string | undefined): (event: Event) => boolean {
  if (filter === undefined) return () => true;
  const [, column = "", value = ""] = filterPattern.exec(filter) ?? [];
  const isColumn = (name: string): name is keyof Event => name in columns;
  if (!isColumn(column))
    throw new CatalogError("InvalidInput", `filter: must be one column and its value, such as "state = 'claim'"`);
  return (event) => String(event[column]) === value.replaceAll("''", "'");
}

/** The status of a job in terms of LanceDB's client, which has no state for waiting jobs. */
export const remoteState: Readonly<Record<TransactionStatus, RemoteJobState>> = {
  Queued: "IN_PROGRESS",
  Running: "IN_PROGRESS",
  Succeeded: "DONE",
  Failed: "FAILED",
  Canceled: "CANCELLED",
};
