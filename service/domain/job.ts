import {
  CatalogError,
  defaultDelimiter,
  formatIdentifier,
  type Identifier,
  isOpen,
  type Job,
  jobPrefix,
  type TransactionStatus,
} from "@tiltyard/protocol";
import { mayOpenerWrite } from "../auth/job-key.ts";
import { updateAttempt } from "../store/job-attempts.ts";
import { findOpenJobs, hasTable, insertJob, type JobRecord, type NewJobRecord, updateJob } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import { findTable, findTableById, type TableRecord } from "../store/tables.ts";
import { insertTask } from "../store/tasks.ts";
import type { TransactionRecord } from "../store/transactions.ts";
import { requireTable, tableNotFound } from "./require.ts";
import { type Caller, type Change, newTransaction, type TransactionNames } from "./transaction.ts";

/** A job before its insertion. */
export interface NewJob extends TransactionNames {
  readonly table: Identifier;
  readonly opened: NewJobRecord;
  /** Opens the job as Queued. Its runner changes the status. @throws CatalogError TableNotFound */
  open(session: Session): Promise<void>;
}

interface JobRequest extends Omit<Change, "objects" | "properties"> {
  readonly table: Identifier;
  readonly parameters: NewJobRecord["parameters"];
}

/** Prepares a job on a table. @throws CatalogError InvalidInput if the parameters are too long. */
export function prepareJob({ table, parameters, ...change }: JobRequest): NewJob {
  requireFitting("the job's parameters", parameters, propertiesLengthMax);
  const { names, opened } = newTransaction({ ...change, objects: [table] });
  const { properties: _, ...rest } = opened;
  const job = { ...rest, apiKey: change.caller.principal.apiKeyId, parameters };
  return {
    ...names,
    table,
    opened: job,
    open: async (session) => insertJob(session, job, (await requireTable(session, table)).id),
  };
}

/** Converts a job to the response of the management API. */
export function toJob(record: JobRecord, delimiter: string): Job {
  const { heartbeatAtMillis: heartbeat } = record;
  return {
    job_id: formatIdentifier([...record.namespace, record.id], delimiter),
    status: record.status,
    operation: record.operation,
    objects: record.objects.map((object) => [...object]),
    principal: record.principal,
    request_id: record.requestId,
    parameters: { ...record.parameters },
    progress: { ...record.progress },
    result: { ...record.result },
    attempt: record.attempt,
    started_at_millis: record.startedAtMillis,
    heartbeat: heartbeat === undefined ? undefined : new Date(heartbeat).toISOString(),
    reason: record.reason,
    platform: { ...record.platform },
    created_at_millis: record.createdAtMillis,
    updated_at_millis: record.updatedAtMillis,
    ended_at_millis: record.endedAtMillis,
  };
}

/** Returns the principal that the audit names for the changes of a job: the job and its opener. */
export function principalOfJob({ namespace, id, principal }: TransactionRecord): string {
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

/** The maximum length of the parameters of a job as JSON, and of its properties. */
export const propertiesLengthMax = 224 * 1024;

/** Returns a changed job. The first change to a final status is the end of the job. */
export function changed(job: JobRecord, changes: Partial<JobRecord>): JobRecord {
  const next = { ...job, ...changes, updatedAtMillis: Date.now() };
  return isOpen(next) ? next : { ...next, endedAtMillis: job.endedAtMillis ?? next.updatedAtMillis };
}

/**
 * Cancels a job. A running attempt learns of it with its next heartbeat. A canceled job stays unchanged.
 *
 * @throws CatalogError ConcurrentModification if the job has ended in another way.
 */
export function cancel(job: JobRecord, { principal }: Pick<Caller, "principal">): JobRecord {
  if (job.status === "Canceled") return job;
  return changed(job, { status: move(job.status, "Canceled"), reason: `canceled by ${principal.name}` });
}

/**
 * Writes the changes of a job. Its end also ends its latest attempt. After a failure or a cancellation, a task also ends
 * Geneva's own record of the job, which Geneva's clients read.
 */
export async function writeJob(session: Session, job: JobRecord): Promise<void> {
  await updateJob(session, job);
  if (isOpen(job)) return;
  await updateAttempt(session, job.id, job.attempt, { endedAtMillis: job.endedAtMillis, reason: job.reason });
  if (job.status === "Succeeded") return;
  await insertTask(session, { kind: "end_record", subject: JSON.stringify([...job.namespace, job.id]) });
}

/** Returns a job as failed if its table was dropped. Another table of the same name is not its table. */
export async function failWithoutTable(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  if (await hasTable(session, job)) return undefined;
  const [name = []] = job.objects;
  const table = formatIdentifier(name);
  const isRecreated = (await findTable(session, name)) !== undefined;
  const reason = isRecreated
    ? `the table ${table} was dropped, and another table has its name now: open a new job for that one`
    : `the table ${table} was dropped`;
  return changed(job, { status: "Failed", reason });
}

/** Returns a job as failed if the principal that opened it may no longer write its table. */
export async function failWithoutRights(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  if (await mayOpenerWrite(session, job)) return undefined;
  const objects = job.objects.map((object) => formatIdentifier(object)).join(", ");
  return changed(job, { status: "Failed", reason: `${job.principal} may no longer write ${objects}` });
}

/** Returns the present name of a job's table, for another job with its parameters. @throws CatalogError TableNotFound */
export async function presentTable(
  session: Session,
  { objects: [name = []], tableId }: JobRecord,
): Promise<Identifier> {
  if (tableId === undefined) return name;
  const table = await findTableById(session, tableId);
  if (table === undefined) throw tableNotFound(name);
  return table.identifier;
}

/**
 * Requires that no job of a table is open, because jobs open their table by its name.
 *
 * @throws CatalogError ConcurrentModification
 */
export async function requireNoOpenJob(session: Session, { id, identifier }: TableRecord): Promise<void> {
  const [open] = await findOpenJobs(session, id);
  if (open === undefined) return;
  throw new CatalogError(
    "ConcurrentModification",
    `table ${formatIdentifier(identifier)} has the open job ${formatIdentifier([...open.namespace, open.id])}, which opens it by its name: wait for its end, or cancel it`,
  );
}

/** Requires that properties do not exceed a length as JSON. @throws CatalogError InvalidInput */
export function requireFitting(what: string, properties: Readonly<Record<string, string>>, lengthMax: number): void {
  if (JSON.stringify(properties).length > lengthMax)
    throw new CatalogError("InvalidInput", `${what}: must have at most ${lengthMax} characters as JSON`);
}

/**
 * Requires a table that Lance's clients can name, because no job could open any other. All of them join the parts of its
 * identifier with the default delimiter.
 *
 * @throws CatalogError InvalidInput
 */
export function requireNameable(table: Identifier): void {
  if (table.every((part) => !part.includes(defaultDelimiter))) return;
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
