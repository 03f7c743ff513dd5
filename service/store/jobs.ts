import { type Identifier, openStatuses } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import { withNulls } from "./records.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { findTable } from "./tables.ts";
import { idAt } from "./transaction-ids.ts";
import { isOpen, keyOf, type NewTransaction, toRow, toStoredText, toTransaction } from "./transactions.ts";

type Row = RecordOf<"jobs">;

/** A job before its insertion. */
export interface NewJobRecord extends Omit<NewTransaction, "status" | "properties">, Pick<Row, "apiKey"> {
  /** The fields of the request, which never change. */
  readonly parameters: NonNullable<Row["parameters"]>;
}

/** A job. Its `properties` are those that clients have set. */
export interface JobRecord extends Omit<Row, "namespace" | "parameters">, NewJobRecord {}

/** Inserts a Queued job. */
export async function insertJob({ db }: Session, job: NewJobRecord, tableId: number): Promise<void> {
  const opened = toRow({ ...job, status: "Queued", properties: {} });
  await db
    .insertInto("jobs")
    .values({ ...opened, updatedAtMillis: opened.createdAtMillis, tableId })
    .execute();
}

/** Selects all columns of jobs. The alias of the table is `t`. */
export function selectJobs(db: Kysely<Schema>) {
  return db.selectFrom("jobs as t").selectAll();
}

export function toJob(row: Row): JobRecord {
  const { parameters, ...record } = toTransaction(row);
  // The previous release writes the parameters of a new job to its properties.
  return parameters === undefined
    ? { ...record, properties: {}, parameters: record.properties }
    : { ...record, parameters };
}

/** @param identifier The namespace and the id of the job. */
export async function findJob({ db }: Session, identifier: Identifier): Promise<JobRecord | undefined> {
  const { id, namespace } = keyOf(identifier);
  const row = await selectJobs(db).where("t.id", "=", id).where("t.namespace", "=", namespace).executeTakeFirst();
  return row && toJob(row);
}

/** @param id The id, which is unique across all namespaces. */
export async function findJobById({ db }: Session, id: string): Promise<JobRecord | undefined> {
  const row = await selectJobs(db).where("t.id", "=", id).executeTakeFirst();
  return row && toJob(row);
}

/** Reports whether the table of a job still has its name. Jobs of early releases have no id of a table. */
export async function hasTable(session: Session, { objects: [name = []], tableId }: JobRecord): Promise<boolean> {
  return tableId === undefined || (await findTable(session, name))?.id === tableId;
}

/** Lists the open jobs on a table, the oldest first. */
export async function findOpenJobs({ db }: Session, tableId: number): Promise<JobRecord[]> {
  const rows = await selectJobs(db).where(isOpen).where("t.tableId", "=", tableId).orderBy("t.id").execute();
  return rows.map(toJob);
}

/** Updates a job that was read in the same database transaction. */
export async function updateJob({ db }: Session, { id, namespace: _, reason, ...job }: JobRecord): Promise<void> {
  await db
    .updateTable("jobs")
    .set(withNulls({ ...job, reason: reason && toStoredText(reason) }))
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
