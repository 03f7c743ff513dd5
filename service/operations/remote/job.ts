import { rowsAsStream } from "@tiltyard/lance-worker";
import {
  CatalogError,
  formatIdentifier,
  type Identifier,
  isOpen,
  type JobSummary,
  objectKind,
  parseIdentifier,
  type RemoteJobState,
  remoteContracts,
  type TransactionStatus,
} from "@tiltyard/protocol";
import { requireJob } from "../../domain/require.ts";
import { textsOf } from "../../domain/transaction.ts";
import { toFunctionVersion, versionNotFound } from "../../functions/version.ts";
import { alterJob, cancel, pause, resume, toJob } from "../../jobs/job.ts";
import { findFunctionBy } from "../../store/functions.ts";
import { type AttemptRecord, listAttempts } from "../../store/job-attempts.ts";
import type { JobRecord } from "../../store/jobs.ts";
import type { Session } from "../../store/store.ts";
import type { Handler } from "../handler.ts";
import { listJobs } from "../management/job.ts";
import { findRegistered } from "./function.ts";

export const listRemoteJobs: Handler<"listRemoteJobs"> = async (request, catalog, caller) => {
  const { jobs, page_token } = await listJobs(request, catalog, caller);
  return {
    jobs: jobs.map((job) => ({
      job_id: job.job_id,
      table:
        objectKind(job) === "function"
          ? ""
          : formatIdentifier((job.objects[0] ?? []).slice(request.id.length), request.delimiter),
      job_type: job.operation,
      state: remoteState(job),
      created_at_millis: job.created_at_millis,
    })),
    page_token,
  };
};

export const describeRemoteJob: Handler<"describeRemoteJob"> = async (request, { store }) => {
  const { delimiter, database } = request;
  const id = parseIdentifier(request.job_id, delimiter);
  const registered = await findRegistered(store.read, id);
  if (registered !== undefined)
    return {
      job_id: request.job_id,
      job_type: remoteContracts.createFunction.operationId,
      job_state: "DONE",
      creation_ms: registered.createdAtMillis,
      spec: {},
      result: toFunctionVersion(registered, database),
    };
  const record = await requireJob(store.read, id);
  const job = toJob(record, delimiter);
  const isRegistration = objectKind(job) === "function";
  return {
    job_id: job.job_id,
    job_type: job.operation,
    job_state: remoteState(job),
    creation_ms: job.created_at_millis,
    spec: textsOf(job.parameters),
    ...(job.status === "Succeeded" && {
      result: isRegistration ? await versionOf(store.read, record, database) : resultOf(record),
    }),
    ...(job.status === "Failed" && {
      failure: {
        phase: isRegistration ? "bake" : "execute",
        message: job.reason ?? "the job failed",
        retryable: false,
      },
    }),
  };
};

/** Returns the version that a job has registered. @throws CatalogError FunctionNotFound */
async function versionOf(session: Session, { id, objects, parameters }: JobRecord, database?: readonly string[]) {
  const registered = await findFunctionBy(session, { jobId: id });
  if (registered !== undefined) return toFunctionVersion(registered, database);
  throw versionNotFound(objects[0] ?? [], parameters.version);
}

/** Returns the result of a job with 0 for unknown numbers, because the client requires every number. */
function resultOf({ progress, result }: JobRecord) {
  const { rows_committed = 0, rows_total = rows_committed, rows_skipped_on_error = 0 } = progress;
  const { rows_failed = rows_skipped_on_error, rows_remaining = rows_total - rows_committed } = result;
  // Geneva also commits the rows that it skips.
  const { rows_assigned = Math.max(0, rows_committed - rows_failed), source_version = 0, published_version } = result;
  return { rows_assigned, rows_failed, rows_remaining, source_version, published_version };
}

/** Cancels a job. For LanceDB's client, the cancellation of an ended job succeeds without an effect. */
export const cancelRemoteJob: Handler<"cancelRemoteJob"> = async (request, { store }, caller) => {
  const { after } = await alterJob(store, idOf(request), (session, job) =>
    isOpen(job) ? cancel(session, job, caller) : job,
  );
  return { job_id: request.job_id, job_state: remoteStates[after.status] };
};

export const pauseRemoteJob: Handler<"pauseRemoteJob"> = async (request, { store }) => {
  const { before, after } = await alterJob(store, idOf(request), pause);
  return before === after ? {} : { paused: true };
};

export const resumeRemoteJob: Handler<"resumeRemoteJob"> = async (request, { store }) => {
  const { before, after } = await alterJob(store, idOf(request), resume);
  return before === after ? {} : { resumed: true };
};

function idOf({ job_id, delimiter }: { readonly job_id: string; readonly delimiter: string }): Identifier {
  return parseIdentifier(job_id, delimiter);
}

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
    ...{ state: "queued", updated_by: principal, emitted_from: platformOf(job), emitted_by: principal },
    ...{ claim_entity: "", rows_processed: 0, timestamp_millis: job.createdAtMillis },
  };
  const runner = { ...opened, updated_by: "runner", emitted_by: "runner" };
  const claims = attempts.map((attempt) => ({
    ...runner,
    ...{ state: "claim", emitted_from: platformOf(attempt), claim_entity: `attempt ${attempt.number}` },
    rows_processed: attempt.number === job.attempt ? (progress.rows_committed ?? 0) : 0,
    timestamp_millis: attempt.claimedAtMillis,
  }));
  const last = claims.at(-1) ?? runner;
  const ended = { ...last, state: remoteStates[status].toLowerCase(), timestamp_millis: job.endedAtMillis ?? 0 };
  return [opened, ...claims, ...(isOpen(job) ? [] : [ended])];
}

function platformOf({ platform }: Pick<AttemptRecord, "platform">): string {
  return platform.ray_job ?? platform.ray_address ?? "";
}

function readFilter(filter: string | undefined): (event: Event) => boolean {
  if (filter === undefined) return () => true;
  const [, column = "", value = ""] = filterPattern.exec(filter) ?? [];
  const isColumn = (name: string): name is keyof Event => Object.hasOwn(columns, name);
  if (!isColumn(column))
    throw new CatalogError("InvalidInput", `filter: must be one column and its value, such as "state = 'claim'"`);
  return (event) => String(event[column]) === value.replaceAll("''", "'");
}

/** The status of a job in terms of LanceDB's client, which has no state for waiting jobs. */
const remoteStates: Readonly<Record<TransactionStatus, RemoteJobState>> = {
  Queued: "IN_PROGRESS",
  Running: "IN_PROGRESS",
  Succeeded: "DONE",
  Failed: "FAILED",
  Canceled: "CANCELLED",
};

function remoteState({ status, paused_at_millis: since }: Pick<JobSummary, "status" | "paused_at_millis">) {
  return since === undefined ? remoteStates[status] : "PAUSED";
}
