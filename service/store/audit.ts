import type { Identifier, TransactionStatus } from "@tiltyard/protocol";
import { type Kysely, type SqlBool, sql } from "kysely";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { idAt } from "./transaction-ids.ts";
import {
  keyOf,
  type NewTransaction,
  openedColumns,
  type TransactionRecord,
  toAuditRecord,
  toColumns,
} from "./transactions.ts";

const insertRecord = statement((db, p: Schema["audit_records"]) =>
  db.insertInto("audit_records").values(pick(p, ...openedColumns)),
);

/** Appends a record to the audit. Records never change: an outcome is a separate row. */
export async function insertAuditRecord(session: Session, record: NewTransaction): Promise<void> {
  await session.run(insertRecord, toColumns(record));
}

const insertOutcome = statement((db, p: Schema["audit_outcomes"]) =>
  db
    .insertInto("audit_outcomes")
    .values(pick(p, "record_id", "status", "reason", "recorded_at"))
    .onConflict((conflict) => conflict.doNothing()),
);

/** Appends the outcome of a record that was opened as Running or whose effect was withdrawn. The first outcome is final. */
export async function insertAuditOutcome(
  session: Session,
  recordId: string,
  status: Extract<TransactionStatus, "Succeeded" | "Failed">,
  reason: string | null = null,
): Promise<void> {
  await session.run(insertOutcome, { record_id: recordId, status, reason, recorded_at: Date.now() });
}

/** Selects audit records with their outcomes as rows that resemble jobs. The alias of the table of records is `t`. */
export function selectAuditRecords(db: Kysely<Schema>) {
  return db
    .selectFrom("audit_records as t")
    .leftJoin("audit_outcomes as outcome", "outcome.record_id", "t.id")
    .select(["t.id", "t.namespace", "t.operation", "t.objects", "t.principal", "t.request_id"])
    .select(["t.properties", "t.created_at", "outcome.reason"])
    .select(({ fn }) => [
      fn.coalesce("outcome.status", "t.status").as("status"),
      fn.coalesce("outcome.recorded_at", "t.created_at").as("updated_at"),
    ]);
}

const find = statement((db, p: ReturnType<typeof keyOf>) =>
  selectAuditRecords(db).where("t.id", "=", p.id).where("t.namespace", "=", p.namespace),
);

/** @param identifier The namespace and the id of the record. */
export async function findAuditRecord(
  session: Session,
  identifier: Identifier,
): Promise<TransactionRecord | undefined> {
  const row = await session.first(find, keyOf(identifier));
  return row && toAuditRecord(row);
}

const allowDeletion = statement((db, p: { before: number }) =>
  db
    .insertInto("audit_retention")
    .values({ deleted_before: p.before })
    .onConflict((conflict) => conflict.doNothing()),
);
const forgetEarlier = statement((db, p: { before: number }) =>
  db.deleteFrom("audit_retention").where("deleted_before", "<", p.before),
);
const hasEnded = sql<SqlBool>`(
  audit_records.status = 'Succeeded'
  or exists (select 1 from audit_outcomes where audit_outcomes.record_id = audit_records.id))`;
const listExpired = statement((db, p: { before: number; upper: string; limit: number }) =>
  db
    .selectFrom("audit_records")
    .select("id")
    .where("id", "<", p.upper)
    .where("created_at", "<", p.before)
    .where(hasEnded)
    .orderBy("id")
    .limit(p.limit),
);
const deleteRecords = statement((db, p: { before: number; last: string }) =>
  db.deleteFrom("audit_records").where("id", "<=", p.last).where("created_at", "<", p.before).where(hasEnded),
);
const deleteOutcomes = statement((db, p: { last: string }) =>
  db
    .deleteFrom("audit_outcomes")
    .where("record_id", "<=", p.last)
    .where(sql<SqlBool>`not exists (select 1 from audit_records where audit_records.id = audit_outcomes.record_id)`),
);

/**
 * Deletes the oldest final records. Stores the time limit of the deletion first, because the database rejects any other
 * deletion.
 *
 * @returns The number of deleted records.
 */
export async function deleteExpiredRecords(session: Session, beforeMillis: number, limit: number): Promise<number> {
  const expired = { before: beforeMillis, upper: idAt(beforeMillis), limit };
  const last = (await session.values<typeof expired, string>(listExpired, expired)).at(-1);
  if (last === undefined) return 0;
  await session.run(allowDeletion, { before: beforeMillis });
  await session.run(forgetEarlier, { before: beforeMillis });
  const deleted = await session.run(deleteRecords, { before: beforeMillis, last });
  await session.run(deleteOutcomes, { last });
  return deleted;
}
