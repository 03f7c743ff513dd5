import type { Identifier } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import { toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { idAt } from "./transaction-ids.ts";
import { type NewTransaction, objectSeparator, type TransactionRecord, toColumns, toRecord } from "./transactions.ts";

const insert = statement((db, p: ReturnType<typeof toColumns>) =>
  db.insertInto("jobs").values({
    id: p.id,
    namespace: p.namespace,
    operation: p.operation,
    objects: p.objects,
    principal: p.principal,
    request_id: p.request_id,
    status: p.status,
    properties: p.properties,
    created_at: p.now,
    updated_at: p.now,
  }),
);

export async function insertJob(session: Session, job: NewTransaction): Promise<void> {
  await session.run(insert, toColumns(job));
}

/** All columns of jobs; their table is `t`. */
export function selectJobs(db: Kysely<Schema>) {
  return db.selectFrom("jobs as t").selectAll();
}

const find = statement((db, p: { id: string; namespace: string }) =>
  selectJobs(db).where("t.id", "=", p.id).where("t.namespace", "=", p.namespace),
);

/** @param identifier The namespace of the job, and its id. */
export async function findJob(session: Session, identifier: Identifier): Promise<TransactionRecord | undefined> {
  const row = await session.first(find, { id: identifier.at(-1) ?? "", namespace: toPath(identifier.slice(0, -1)) });
  return row && toRecord(row);
}

const findById = statement((db, p: { id: string }) => selectJobs(db).where("t.id", "=", p.id));

/** @param id Without its namespace: no two jobs have the same. */
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

/** The jobs on one table that have not ended, the oldest first. */
export async function findOpenJobs(session: Session, table: Identifier): Promise<TransactionRecord[]> {
  const objects = JSON.stringify([table]);
  const find = objects.includes(objectSeparator) ? findOpenWithSeparator : findOpenWithoutSeparator;
  return (await session.all(find, { objects })).map(toRecord);
}

const update = statement((db, p: { id: string; status: string; properties: string; updated_at: number }) =>
  db
    .updateTable("jobs")
    .set({ status: p.status, properties: p.properties, updated_at: p.updated_at })
    .where("id", "=", p.id),
);

/** Writes what may change of a job: its status and its properties. */
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

/**
 * Deletes the oldest jobs that ended before a time.
 *
 * @returns How many were deleted.
 */
export async function deleteExpiredJobs(session: Session, beforeMillis: number, limit: number): Promise<number> {
  return session.run(deleteExpired, { before: beforeMillis, upper: idAt(beforeMillis), limit });
}
