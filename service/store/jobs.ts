import type { Identifier, TransactionStatus } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { idAt } from "./transaction-ids.ts";
import {
  keyOf,
  type NewTransaction,
  objectSeparator,
  openedColumns,
  type TransactionRecord,
  toColumns,
  toRecord,
} from "./transactions.ts";

/** The statuses of an open job. */
export const openStatuses: readonly TransactionStatus[] = ["Queued", "Running"];

/** Reports whether a job is open. */
export function isOpen({ status }: Pick<TransactionRecord, "status">): boolean {
  return openStatuses.includes(status);
}

/** Returns the number of the latest attempt in the properties of a job; 0 before the first attempt. */
export function latestAttempt(properties: TransactionRecord["properties"]): number {
  const numbers = Object.keys(properties).flatMap((key) => /^attempt\.([1-9]\d*)$/.exec(key)?.[1] ?? []);
  return Math.max(0, ...numbers.map(Number));
}

const insert = statement((db, p: Schema["audit_records"] & Pick<Schema["jobs"], "api_key">) =>
  db.insertInto("jobs").values({ ...pick(p, ...openedColumns, "api_key"), updated_at: p.created_at }),
);

export async function insertJob(session: Session, job: NewTransaction): Promise<void> {
  await session.run(insert, { ...toColumns(job), api_key: job.apiKeyId ?? null });
}

/** Selects all columns of jobs. The alias of the table is `t`. */
export function selectJobs(db: Kysely<Schema>) {
  return db.selectFrom("jobs as t").selectAll();
}

const find = statement((db, p: ReturnType<typeof keyOf>) =>
  selectJobs(db).where("t.id", "=", p.id).where("t.namespace", "=", p.namespace),
);

/** @param identifier The namespace and the id of the job. */
export async function findJob(session: Session, identifier: Identifier): Promise<TransactionRecord | undefined> {
  const row = await session.first(find, keyOf(identifier));
  return row && toRecord(row);
}

const findById = statement((db, p: { id: string }) => selectJobs(db).where("t.id", "=", p.id));

/** @param id The id, which is unique across all namespaces. */
export async function findJobById(session: Session, id: string): Promise<TransactionRecord | undefined> {
  const row = await session.first(findById, { id });
  return row && toRecord(row);
}

function findOpen(whether: "like" | "not like") {
  return statement((db, p: { objects: string }) =>
    selectJobs(db)
      .where("t.objects", "=", p.objects)
      .where("t.objects", whether, `%${objectSeparator}%`)
      .where("t.status", "in", ["Queued", "Running"])
      .orderBy("t.id"),
  );
}

const findOpenWithSeparator = findOpen("like");
const findOpenWithoutSeparator = findOpen("not like");

/** Lists the open jobs on a table, the oldest first. */
export async function findOpenJobs(session: Session, table: Identifier): Promise<TransactionRecord[]> {
  const objects = JSON.stringify([table]);
  const find = objects.includes(objectSeparator) ? findOpenWithSeparator : findOpenWithoutSeparator;
  return (await session.all(find, { objects })).map(toRecord);
}

const update = statement((db, p: { id: string; status: string; properties: string; updated_at: number }) =>
  db
    .updateTable("jobs")
    .set(pick(p, "status", "properties", "updated_at"))
    .where("id", "=", p.id),
);

/** Updates the status and the properties of a job. */
export async function updateJob(session: Session, job: TransactionRecord): Promise<void> {
  await session.run(update, {
    id: job.id,
    status: job.status,
    properties: JSON.stringify(job.properties),
    updated_at: job.updatedAtMillis,
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
          .where("status", "not in", ["Queued", "Running"])
          .orderBy("id")
          .limit(p.limit),
      ),
    ),
);

/** Deletes the oldest jobs that ended before a time. @returns The number of deleted jobs. */
export async function deleteExpiredJobs(session: Session, beforeMillis: number, limit: number): Promise<number> {
  return session.run(deleteExpired, { before: beforeMillis, upper: idAt(beforeMillis), limit });
}
