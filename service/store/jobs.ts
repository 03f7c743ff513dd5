import { type Identifier, openStatuses, type TransactionStatus } from "@tiltyard/protocol";
import type { Kysely, Selectable } from "kysely";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { findTable } from "./tables.ts";
import { idAt } from "./transaction-ids.ts";
import {
  keyOf,
  type NewTransaction,
  openedColumns,
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

type NewRow = Schema["audit_records"] & Pick<Schema["jobs"], "api_key" | "table_id" | "parameters">;
const insert = statement((db, p: NewRow) =>
  db
    .insertInto("jobs")
    .values({ ...pick(p, ...openedColumns, "api_key", "table_id", "parameters"), updated_at: p.created_at }),
);

/** Inserts a Queued job. */
export async function insertJob(session: Session, job: NewJobRecord, tableId: number): Promise<void> {
  await session.run(insert, {
    ...toColumns({ ...job, status: "Queued", properties: {} }),
    api_key: job.apiKeyId ?? null,
    table_id: tableId,
    parameters: JSON.stringify(job.parameters),
  });
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

const find = statement((db, p: ReturnType<typeof keyOf>) =>
  selectJobs(db).where("t.id", "=", p.id).where("t.namespace", "=", p.namespace),
);

/** @param identifier The namespace and the id of the job. */
export async function findJob(session: Session, identifier: Identifier): Promise<JobRecord | undefined> {
  const row = await session.first(find, keyOf(identifier));
  return row && toJobRecord(row);
}

const findById = statement((db, p: { id: string }) => selectJobs(db).where("t.id", "=", p.id));

/** @param id The id, which is unique across all namespaces. */
export async function findJobById(session: Session, id: string): Promise<JobRecord | undefined> {
  const row = await session.first(findById, { id });
  return row && toJobRecord(row);
}

/** Reports whether the table of a job still has its name. Jobs of early releases have no id of a table. */
export async function hasTable(session: Session, { objects: [name = []], tableId }: JobRecord): Promise<boolean> {
  return tableId === undefined || (await findTable(session, name))?.id === tableId;
}

const findOpen = statement((db, p: { table: number }) =>
  selectJobs(db).where("t.table_id", "=", p.table).where("t.status", "in", openStatuses).orderBy("t.id"),
);

/** Lists the open jobs on a table, the oldest first. */
export async function findOpenJobs(session: Session, tableId: number): Promise<JobRecord[]> {
  return (await session.all(findOpen, { table: tableId })).map(toJobRecord);
}

/** The columns of a job that change. */
const mutable = [
  "status",
  "properties",
  "updated_at",
  "parameters",
  "attempt",
  "claim",
  "started_at",
  "heartbeat_at",
  "ended_at",
  "progress",
  "result",
  "reason",
  "platform",
] as const satisfies readonly (keyof Schema["jobs"])[];

const update = statement((db, p: Pick<Selectable<Schema["jobs"]>, "id" | (typeof mutable)[number]>) =>
  db
    .updateTable("jobs")
    .set(pick(p, ...mutable))
    .where("id", "=", p.id),
);

/** Updates a job that was read in the same database transaction. */
export async function updateJob(session: Session, job: JobRecord): Promise<void> {
  await session.run(update, {
    id: job.id,
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
  });
}

const deleteExpired = statement((db, p: { before: number; upper: string; limit: number }) =>
  db
    .deleteFrom("jobs")
    .where(({ eb, selectFrom }) =>
      eb(
        "id",
        "in",
        selectFrom("jobs")
          .select("id")
          .where("id", "<", p.upper)
          .where("updated_at", "<", p.before)
          .where("status", "not in", openStatuses)
          .orderBy("id")
          .limit(p.limit),
      ),
    ),
);

/** Deletes the oldest jobs that ended before a time. @returns The number of deleted jobs. */
export async function deleteExpiredJobs(session: Session, beforeMillis: number, limit: number): Promise<number> {
  return session.run(deleteExpired, { before: beforeMillis, upper: idAt(beforeMillis), limit });
}
