import {
  CatalogError,
  defaultDelimiter,
  durationText,
  formatIdentifier,
  type Identifier,
  isOpen,
  type Job,
  type JobSummary,
  jobPrefix,
  type ReadonlyDeep,
  type TransactionStatus,
  viewDefinitionPrefix,
} from "@tiltyard/protocol";
import { formerWriter } from "../auth/job-key.ts";
import { requireJob, requireTable } from "../domain/require.ts";
import { type Caller, type Change, newTransaction, type Origin, type TransactionNames } from "../domain/transaction.ts";
import { setReady } from "../store/functions.ts";
import { findAttempt, runningMillis, updateAttempt } from "../store/job-attempts.ts";
import {
  countOpenJobs,
  findOpenJobs,
  hasObject,
  insertJob,
  type JobRecord,
  type JobSummaryRecord,
  type NewJobRecord,
  updateJob,
} from "../store/jobs.ts";
import type { Session, Store } from "../store/store.ts";
import { findTable, type TableRecord } from "../store/tables.ts";
import { insertTask } from "../store/tasks.ts";

/** A job on a table before its insertion. */
export interface NewJob extends TransactionNames {
  readonly table: Identifier;
  readonly opened: NewJobRecord;
  /** Opens the job as Queued. Its runner changes the status. @throws CatalogError TableNotFound, TooManyJobs */
  open(session: Session, maxima: OpenJobMaxima): Promise<void>;
}

export interface OpenJobMaxima {
  readonly perPrincipal: number;
  readonly perNamespace: number;
}

interface JobRequest {
  readonly operation: string;
  readonly caller: Origin;
  readonly parameters: NewJobRecord["parameters"];
  /** The principal that chose the parameters; the caller if undefined. */
  readonly author?: string | undefined;
}

/** Prepares a job on a table. @throws CatalogError InvalidInput if the parameters are too long. */
export function prepareJob({ table, ...request }: JobRequest & Pick<NewJob, "table">): NewJob {
  const { names, opened } = newJob({ ...request, objects: [table] });
  return {
    ...names,
    table,
    opened,
    open: async (session, maxima) => {
      const { id } = await requireTable(session, table);
      await requireRoom(session, opened, maxima);
      await insertJob(session, opened, id);
    },
  };
}

/** Assigns an id and names to a job. @throws CatalogError InvalidInput if the parameters are too long. */
export function newJob({ operation, caller, objects, parameters, author }: JobRequest & Pick<Change, "objects">) {
  requireFitting("the job's parameters", parameters, definitionLengthMax);
  const own = Object.entries(parameters).filter(([name]) => !name.startsWith(viewDefinitionPrefix));
  requireFitting("the job's parameters", Object.fromEntries(own), parametersLengthMax);
  const { names, opened } = newTransaction({ caller: { ...caller, operation }, objects });
  const { properties: _, ...rest } = opened;
  return { names, opened: { ...rest, apiKey: caller.principal.apiKeyId, parameters, author } };
}

/**
 * Requires that a principal can open one more job in a namespace, or several.
 *
 * @throws CatalogError TooManyJobs
 */
export async function requireRoom(
  session: Session,
  { principal, namespace }: { readonly principal: string; readonly namespace: Identifier },
  { perPrincipal, perNamespace }: OpenJobMaxima,
  several = 1,
): Promise<void> {
  const refuse = (owner: string, count: number, max: number, setting: string) => {
    if (count + several <= max) return;
    throw new CatalogError(
      "TooManyJobs",
      `${owner} has ${count} open jobs, of ${max} at most (${setting}): wait for the end of some, or cancel them`,
    );
  };
  const ofPrincipal = await countOpenJobs(session, { principal }, perPrincipal);
  refuse(principal, ofPrincipal, perPrincipal, "TILTYARD_OPEN_JOBS_PER_PRINCIPAL");
  const inNamespace = await countOpenJobs(session, { namespace }, perNamespace);
  const name = namespace.length === 0 ? "the root namespace" : `the namespace ${formatIdentifier(namespace)}`;
  refuse(name, inNamespace, perNamespace, "TILTYARD_OPEN_JOBS_PER_NAMESPACE");
}

/** Converts a job with its parameters to the response of the management API. */
export function toJob(record: JobRecord, delimiter: string): ReadonlyDeep<Job> {
  return { ...toJobSummary(record, delimiter), parameters: record.parameters };
}

/** Converts a job to an item of a list. */
export function toJobSummary(record: JobSummaryRecord, delimiter: string): ReadonlyDeep<JobSummary> {
  const { heartbeatAtMillis: heartbeat } = record;
  return {
    job_id: formatIdentifier([...record.namespace, record.id], delimiter),
    status: record.status,
    operation: record.operation,
    objects: record.objects,
    principal: record.principal,
    request_id: record.requestId,
    column: record.column,
    progress: record.progress,
    result: record.result,
    priority: record.priority,
    attempt: record.attempt,
    interruptions: record.interruptions,
    paused_at_millis: record.pausedAtMillis,
    started_at_millis: record.startedAtMillis,
    heartbeat: heartbeat === undefined ? undefined : new Date(heartbeat).toISOString(),
    reason: record.reason,
    platform: record.platform,
    created_at_millis: record.createdAtMillis,
    updated_at_millis: record.updatedAtMillis,
    ended_at_millis: record.endedAtMillis,
  };
}

/** The counters that show progress. The others change without any, such as rates and resources. */
const countersOfProgress = [
  "rows_total",
  "rows_committed",
  "rows_checkpointed",
  "rows_ready_for_commit",
  "tasks_completed",
] as const;

/** Reports whether an attempt has done any work between two reports. */
export function hasProgressed(before: JobRecord["progress"], after: JobRecord["progress"]): boolean {
  return countersOfProgress.some((name) => before[name] !== after[name]);
}

/** Returns the principal that the audit names for the changes of a job: the job and its opener. */
export function principalOfJob({
  namespace,
  id,
  principal,
}: Pick<JobRecord, "namespace" | "id" | "principal">): string {
  return `${jobPrefix}${formatIdentifier([...namespace, id])} for ${principal}`;
}

/** The allowed transitions of a job. A status without any is final. */
const moves: Record<TransactionStatus, readonly TransactionStatus[]> = {
  Queued: ["Running", "Failed", "Canceled"],
  Running: ["Succeeded", "Failed", "Canceled"],
  Succeeded: [],
  Failed: [],
  Canceled: [],
};

/** The maximum length of the parameters of a job as JSON. */
const definitionLengthMax = 224 * 1024;
/** The maximum length of the parameters without the definition of a view. The longest are manifests, of some KiB. */
const parametersLengthMax = 64 * 1024;

/** Returns a changed job. The first change to a final status is the end of the job. */
export function changed({ time }: Session, job: JobRecord, changes: Partial<JobRecord>): JobRecord {
  const next = { ...job, ...changes, updatedAtMillis: time() };
  if (isOpen(next)) return next;
  return { ...next, pausedAtMillis: undefined, endedAtMillis: job.endedAtMillis ?? next.updatedAtMillis };
}

/**
 * Cancels a job. A running attempt learns of it with its next heartbeat. A canceled job stays unchanged.
 *
 * @throws CatalogError ConcurrentModification if the job has ended in another way.
 */
export function cancel(session: Session, job: JobRecord, { principal }: Pick<Caller, "principal">): JobRecord {
  if (job.status === "Canceled") return job;
  return changed(session, job, { status: move(job.status, "Canceled"), reason: `canceled by ${principal.name}` });
}

/** Changes a job. @returns The job before and after it, equal if nothing changed. @throws CatalogError, also of the change */
export function alterJob(
  store: Store,
  id: Identifier,
  alter: (session: Session, job: JobRecord) => JobRecord | Promise<JobRecord>,
): Promise<{ readonly before: JobRecord; readonly after: JobRecord }> {
  return store.write(async (session) => {
    const before = await requireJob(session, id);
    const after = await alter(session, before);
    if (after !== before) await writeJob(session, after);
    return { before, after };
  });
}

/**
 * Pauses a job. Its attempt ends without counting, and its process learns of it with its next heartbeat. A paused job
 * stays unchanged.
 *
 * @throws CatalogError ConcurrentModification if the job has ended.
 */
export async function pause(session: Session, job: JobRecord): Promise<JobRecord> {
  requireOpen(job);
  if (job.pausedAtMillis !== undefined) return job;
  const attempt = await findAttempt(session, job.id, job.attempt);
  const paused = changed(session, job, {
    pausedAtMillis: session.time(),
    heartbeatAtMillis: undefined,
    progressedAtMillis: undefined,
  });
  if (attempt === undefined || attempt.endedAtMillis !== undefined) return paused;
  await updateAttempt(session, job.id, job.attempt, {
    endedAtMillis: paused.pausedAtMillis,
    reason: "the job was paused",
  });
  return { ...paused, interruptions: job.interruptions + 1 };
}

/** Resumes a job. A job that is not paused stays unchanged. @throws CatalogError ConcurrentModification */
export function resume(session: Session, job: JobRecord): JobRecord {
  requireOpen(job);
  return job.pausedAtMillis === undefined ? job : changed(session, job, { pausedAtMillis: undefined });
}

function requireOpen(job: JobRecord): void {
  if (!isOpen(job)) throw new CatalogError("ConcurrentModification", `the job has ended: it is ${job.status}`);
}

/**
 * Writes the changes of a job. Its end also ends its latest attempt. After the success of a registration, its
 * Function is ready. After a failure or a cancellation on a table, a task also ends Geneva's own record of the job, which Geneva's
 * clients read.
 */
export async function writeJob(session: Session, job: JobRecord): Promise<void> {
  await updateJob(session, job);
  if (isOpen(job)) return;
  await updateAttempt(session, job.id, job.attempt, { endedAtMillis: job.endedAtMillis, reason: job.reason });
  if (job.status === "Succeeded") return setReady(session, job.id);
  if (job.tableId === undefined) return;
  await insertTask(session, { kind: "end_record", subject: JSON.stringify([...job.namespace, job.id]) });
}

/**
 * Returns a job as failed if its table, or the version of the Function that it registers, was dropped. Another table of
 * the same name is not its table.
 */
export async function failWithoutObject(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  if (await hasObject(session, job)) return undefined;
  const [name = []] = job.objects;
  const table = formatIdentifier(name);
  if (job.tableId === undefined)
    return changed(session, job, {
      status: "Failed",
      reason: `version ${job.parameters.version} of the function ${table} was dropped`,
    });
  const isRecreated = (await findTable(session, name)) !== undefined;
  const reason = isRecreated
    ? `the table ${table} was dropped, and another table has its name now: open a new job for that one`
    : `the table ${table} was dropped`;
  return changed(session, job, { status: "Failed", reason });
}

/** Returns a job as failed if its opener, or the author of its parameters, may no longer write its table. */
export async function failWithoutRights(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  const former = await formerWriter(session, job);
  if (former === undefined) return undefined;
  const objects = job.objects.map((object) => formatIdentifier(object)).join(", ");
  return changed(session, job, { status: "Failed", reason: `${former} may no longer write ${objects}` });
}

/** Returns an open job as failed if its attempts together have run longer than its timeout. */
export async function failAfterTimeout(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  const { timeout_seconds: seconds } = job.parameters;
  if (seconds === undefined || !isOpen(job) || (await runningMillis(session, job.id)) < seconds * 1000)
    return undefined;
  const last = job.reason === undefined ? "" : `; the last reason was: ${job.reason}`;
  const reason = `stopped after running for ${durationText(seconds)}, its timeout_seconds${last}`;
  return changed(session, job, { status: "Failed", reason });
}

/**
 * Requires that no job of a table is open before its name changes, because jobs open their table by its name, and belong
 * to its namespace.
 *
 * @throws CatalogError ConcurrentModification
 */
export async function requireNoOpenJob(
  session: Session,
  { id, identifier }: Pick<TableRecord, "id" | "identifier">,
): Promise<void> {
  const [open] = await findOpenJobs(session, id);
  if (open === undefined) return;
  throw new CatalogError(
    "ConcurrentModification",
    `table ${formatIdentifier(identifier)} has the open job ${formatIdentifier([...open.namespace, open.id])}, which opens it by its name: wait for its end, or cancel it`,
  );
}

/** Requires that properties do not exceed a length as JSON. @throws CatalogError InvalidInput */
export function requireFitting(what: string, properties: Readonly<Record<string, unknown>>, lengthMax: number): void {
  if (JSON.stringify(properties).length > lengthMax)
    throw new CatalogError("InvalidInput", `${what}: must have at most ${lengthMax} characters as JSON`);
}

/**
 * Reports whether Lance's clients can name a table, because no job could open any other. All of them join the parts of
 * its identifier with the default delimiter.
 */
export function isNameable(table: Identifier): boolean {
  return table.every((part) => !part.includes(defaultDelimiter));
}

/** Requires a table that Lance's clients can name. @throws CatalogError InvalidInput */
export function requireNameable(table: Identifier): void {
  if (isNameable(table)) return;
  throw new CatalogError(
    "InvalidInput",
    `id: Lance's clients interpret each ${defaultDelimiter} in a name as a delimiter, so no job can open this table: rename it`,
  );
}

/** Returns the new status of a job. @throws CatalogError ConcurrentModification for a forbidden transition. */
export function move(from: TransactionStatus, to: TransactionStatus): TransactionStatus {
  if (from === to || moves[from].includes(to)) return to;
  const allowed =
    moves[from].length === 0 ? `${from} is final` : `from ${from} it can change to ${moves[from].join(", ")}`;
  throw new CatalogError("ConcurrentModification", `a job cannot change from ${from} to ${to}: ${allowed}`);
}
