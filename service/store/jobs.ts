import { type Identifier, jobPriorities, openStatuses } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import { findFunctionBy } from "./functions.ts";
import { nameOf, toPath, toRecord } from "./path.ts";
import { withNulls } from "./records.ts";
import { columnsWithout, type RecordOf, type Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { findTable } from "./tables.ts";
import { idAt, isOpen, type NewTransaction, toRow, toStoredText } from "./transactions.ts";

type Row = RecordOf<"jobs">;

/** A job before its insertion. */
export interface NewJobRecord
  extends Omit<NewTransaction, "status" | "properties">,
    Pick<Row, "apiKey" | "parameters" | "author"> {}

/** A job. Its `properties` are those that clients have set. */
export interface JobRecord extends Omit<Row, "namespace">, NewJobRecord {}

/** A job without its parameters. */
export type JobSummaryRecord = Omit<JobRecord, "parameters">;

/** Inserts a Queued job. @param tableId Its table; undefined for the registration of a Function. */
export async function insertJob({ db }: Session, job: NewJobRecord, tableId?: number): Promise<void> {
  const opened = toRow({ ...job, status: "Queued", properties: {} });
  const { column } = job.parameters;
  const priority = jobPriorities.find((each) => each === job.parameters.priority) ?? "normal";
  await db
    .insertInto("jobs")
    .values({ ...opened, updatedAtMillis: opened.createdAtMillis, tableId, column, priority })
    .execute();
}

/** Selects jobs in lists, which do not read the parameters. The alias of the table is `t`. */
export function selectJobSummaries(db: Kysely<Schema>) {
  return db.selectFrom("jobs as t").select(columnsWithout("jobs", "parameters"));
}

/** @param identifier The namespace and the id of the job. */
export async function findJob(session: Session, identifier: Identifier): Promise<JobRecord | undefined> {
  const { namespace, name: id } = nameOf(identifier);
  const job = await findJobById(session, id);
  return job && toPath(job.namespace) === namespace ? job : undefined;
}

/** @param id The id, which is unique across all namespaces. */
export async function findJobById({ db }: Session, id: string): Promise<JobRecord | undefined> {
  const row = await db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toRecord(row);
}

/** Reports whether the table of a job still has its name, or whether the version of the Function still exists. */
export async function hasObject(session: Session, { id, objects: [name = []], tableId }: JobSummaryRecord) {
  if (tableId === undefined) return (await findFunctionBy(session, { jobId: id })) !== undefined;
  return (await findTable(session, name))?.id === tableId;
}

const ofOpenJob = ["id", "namespace", "operation", "principal", "requestId", "status", "column"] as const;
/** An open job without what clients have set. */
export type OpenJobRecord = Pick<JobSummaryRecord, (typeof ofOpenJob)[number]>;

/** Lists the open jobs on a table, the oldest first. */
export async function findOpenJobs({ db }: Session, tableId: number): Promise<OpenJobRecord[]> {
  const jobs = db.selectFrom("jobs as t").select(ofOpenJob).where(isOpen).where("t.tableId", "=", tableId);
  const rows = await jobs.orderBy("t.id").execute();
  return rows.map(toRecord);
}

/** Lists the open jobs except those of an operation, the oldest first. */
export async function listQueue({ db }: Session, exceptOperation: string) {
  const jobs = db.selectFrom("jobs as t").select(["id", "principal", "priority", "status", "attempt"]);
  const runnable = jobs.where(isOpen).where("t.pausedAtMillis", "is", null);
  return runnable.where("t.operation", "<>", exceptOperation).orderBy("t.id").execute();
}

/** Counts the open jobs of a principal or in a namespace, up to a limit. */
export async function countOpenJobs(
  { db }: Session,
  { principal, namespace }: { readonly principal?: string; readonly namespace?: Identifier },
  limit: number,
): Promise<number> {
  const open = db
    .selectFrom("jobs as t")
    .select("t.id")
    .where(isOpen)
    .$if(principal !== undefined, (query) => query.where("t.principal", "=", principal ?? ""))
    .$if(namespace !== undefined, (query) => query.where("t.namespace", "=", toPath(namespace ?? [])))
    .limit(limit);
  const { count } = await db
    .selectFrom(open.as("examined"))
    .select(({ fn }) => fn.countAll().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Counts the running jobs without progress since a time. */
export async function countStalledJobs({ db }: Session, sinceMillis: number): Promise<number> {
  const { count } = await db
    .selectFrom("jobs as t")
    .select(({ fn }) => fn.countAll().as("count"))
    .where(isOpen)
    .where("t.status", "=", "Running")
    .where("t.progressedAtMillis", "<=", sinceMillis)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Updates a job that was read in the same database transaction, except its parameters. */
export async function updateJob({ db }: Session, { id, reason, ...job }: JobSummaryRecord): Promise<void> {
  const { namespace: _, parameters: __, ...changes } = { parameters: undefined, ...job };
  await db
    .updateTable("jobs")
    .set(withNulls({ ...changes, reason: reason && toStoredText(reason) }))
    .where("id", "=", id)
    .execute();
}

/** Deletes the oldest jobs that ended before a time. @returns The number of deleted jobs. */
export async function deleteExpiredJobs({ db }: Session, beforeMillis: number, limit: number): Promise<number> {
  const expired = db
    .selectFrom("jobs")
    .select("id")
    .where("id", "<", idAt(beforeMillis))
    .where("updatedAtMillis", "<", beforeMillis)
    .where("status", "not in", openStatuses)
    .orderBy("id")
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom("jobs").where("id", "in", expired).executeTakeFirst();
  return Number(numDeletedRows);
}
