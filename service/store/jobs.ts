import { type Identifier, openStatuses, type TransactionStatus } from "@tiltyard/protocol";
import type { Kysely, Selectable } from "kysely";
import type { Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { findTable } from "./tables.ts";
import { idAt } from "./transaction-ids.ts";
import {
  isOpen,
  keyOf,
  type NewTransaction,
  type TransactionRecord,
  toColumns,
  toRecord,
  toStoredText,
} from "./transactions.ts";

type Texts = Readonly<Record<string, string>>;
type Counts = Readonly<Record<string, number>>;

/** A job before its insertion. */
export interface NewJobRecord extends Omit<NewTransaction, "status" | "properties"> {
  /** The API key of the request; undefined without one. */
  readonly apiKeyId: string | undefined;
  /** The fields of the request, which never change. */
  readonly parameters: Texts;
}

/** A job. Its `properties` are those that clients have set. */
export interface JobRecord extends TransactionRecord, NewJobRecord {
  readonly properties: Texts;
  readonly status: TransactionStatus;
  readonly tableId: number | undefined;
  /** The number of the latest attempt; 0 before the first. */
  readonly attempt: number;
  /** The random text of the process that runs the latest attempt; undefined before its start. */
  readonly claim: string | undefined;
  readonly startedAtMillis: number | undefined;
  readonly heartbeatAtMillis: number | undefined;
  readonly endedAtMillis: number | undefined;
  readonly progress: Counts;
  readonly result: Counts;
  readonly reason: string | undefined;
  readonly platform: Texts;
}

/** Inserts a Queued job. */
export async function insertJob({ db }: Session, job: NewJobRecord, tableId: number): Promise<void> {
  const opened = toColumns({ ...job, status: "Queued", properties: {} });
  await db
    .insertInto("jobs")
    .values({
      ...opened,
      updated_at: opened.created_at,
      api_key: job.apiKeyId ?? null,
      table_id: tableId,
      parameters: JSON.stringify(job.parameters),
    })
    .execute();
}

/** Selects all columns of jobs. The alias of the table is `t`. */
export function selectJobs(db: Kysely<Schema>) {
  return db.selectFrom("jobs as t").selectAll();
}

export function toJobRecord(row: Selectable<Schema["jobs"]>): JobRecord {
  const record = toRecord(row);
  return {
    ...record,
    // The previous release writes the parameters of a new job to its properties.
    properties: row.parameters === null ? {} : record.properties,
    parameters: row.parameters === null ? record.properties : JSON.parse(row.parameters),
    apiKeyId: row.api_key ?? undefined,
    tableId: row.table_id ?? undefined,
    attempt: row.attempt,
    claim: row.claim ?? undefined,
    startedAtMillis: row.started_at ?? undefined,
    heartbeatAtMillis: row.heartbeat_at ?? undefined,
    endedAtMillis: row.ended_at ?? undefined,
    progress: JSON.parse(row.progress),
    result: JSON.parse(row.result),
    reason: row.reason ?? undefined,
    platform: JSON.parse(row.platform),
  };
}

/** @param identifier The namespace and the id of the job. */
export async function findJob({ db }: Session, identifier: Identifier): Promise<JobRecord | undefined> {
  const { id, namespace } = keyOf(identifier);
  const row = await selectJobs(db).where("t.id", "=", id).where("t.namespace", "=", namespace).executeTakeFirst();
  return row && toJobRecord(row);
}

/** @param id The id, which is unique across all namespaces. */
export async function findJobById({ db }: Session, id: string): Promise<JobRecord | undefined> {
  const row = await selectJobs(db).where("t.id", "=", id).executeTakeFirst();
  return row && toJobRecord(row);
}

/** Reports whether the table of a job still has its name. Jobs of early releases have no id of a table. */
export async function hasTable(session: Session, { objects: [name = []], tableId }: JobRecord): Promise<boolean> {
  return tableId === undefined || (await findTable(session, name))?.id === tableId;
}

/** Lists the open jobs on a table, the oldest first. */
export async function findOpenJobs({ db }: Session, tableId: number): Promise<JobRecord[]> {
  const rows = await selectJobs(db).where(isOpen).where("t.table_id", "=", tableId).orderBy("t.id").execute();
  return rows.map(toJobRecord);
}

/** Updates a job that was read in the same database transaction. */
export async function updateJob({ db }: Session, job: JobRecord): Promise<void> {
  await db
    .updateTable("jobs")
    .set({
      status: job.status,
      properties: JSON.stringify(job.properties),
      updated_at: job.updatedAtMillis,
      parameters: JSON.stringify(job.parameters),
      attempt: job.attempt,
      claim: job.claim ?? null,
      started_at: job.startedAtMillis ?? null,
      heartbeat_at: job.heartbeatAtMillis ?? null,
      ended_at: job.endedAtMillis ?? null,
      progress: JSON.stringify(job.progress),
      result: JSON.stringify(job.result),
      reason: job.reason === undefined ? null : toStoredText(job.reason),
      platform: JSON.stringify(job.platform),
    })
    .where("id", "=", job.id)
    .execute();
}

/** Deletes the oldest jobs that ended before a time. @returns The number of deleted jobs. */
export async function deleteExpiredJobs({ db }: Session, beforeMillis: number, limit: number): Promise<number> {
  const expired = db
    .selectFrom("jobs")
    .select("id")
    .where("id", "<", idAt(beforeMillis))
    .where("updated_at", "<", beforeMillis)
    .where("status", "not in", openStatuses)
    .orderBy("id")
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom("jobs").where("id", "in", expired).executeTakeFirst();
  return Number(numDeletedRows);
}
