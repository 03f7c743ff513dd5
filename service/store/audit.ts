import type { Identifier, TransactionStatus } from "@tiltyard/protocol";
import { type Kysely, type SqlBool, sql } from "kysely";
import { toPath } from "./path.ts";
import { defineQuery } from "./queries.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { idAt, type NewTransaction, toAuditRecord, toRow } from "./transactions.ts";

const insertRow = defineQuery((db, row: RecordOf<"auditRecords">) => db.insertInto("auditRecords").values(row));

/** Appends a record to the audit. Records never change: an outcome is a separate row. */
export async function insertAuditRecord(session: Session, record: NewTransaction): Promise<void> {
  await insertRow(session, toRow(record));
}

/** Appends the outcome of a record that was opened as Running or whose effect was withdrawn. The first outcome is final. */
export async function insertAuditOutcome(
  { db }: Session,
  recordId: string,
  status: Extract<TransactionStatus, "Succeeded" | "Failed">,
  reason?: string,
): Promise<void> {
  await db
    .insertInto("auditOutcomes")
    .values({ recordId: recordId, status, reason, recordedAtMillis: Date.now() })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Selects audit records with their outcomes as rows that resemble jobs. The alias of the table of records is `t`. */
export function selectAuditRecords(db: Kysely<Schema>) {
  return db
    .selectFrom("auditRecords as t")
    .leftJoin("auditOutcomes as outcome", "outcome.recordId", "t.id")
    .select(["t.id", "t.namespace", "t.operation", "t.objects", "t.principal", "t.requestId"])
    .select(["t.properties", "t.createdAtMillis"])
    .select(({ fn, ref }) => [
      // A record has undefined in place of null.
      ref("outcome.reason").$castTo<string | undefined>().as("reason"),
      fn.coalesce("outcome.status", "t.status").as("status"),
      fn.coalesce("outcome.recordedAtMillis", "t.createdAtMillis").as("updatedAtMillis"),
    ]);
}

/** @param namespace The namespace of the record; any when undefined, for the id in a version of a table. */
export async function findAuditRecord({ db }: Session, id: string, namespace?: Identifier) {
  let records = selectAuditRecords(db).where("t.id", "=", id);
  if (namespace !== undefined) records = records.where("t.namespace", "=", toPath(namespace));
  const row = await records.executeTakeFirst();
  return row && toAuditRecord(row);
}

const hasEnded = sql<SqlBool>`(
  audit_records.status = 'Succeeded'
  or exists (select 1 from audit_outcomes where audit_outcomes.record_id = audit_records.id))`;

/** Deletes final records up to a time, which is stored first: the database rejects any other deletion. */
export async function deleteExpiredRecords({ db }: Session, beforeMillis: number, limit: number): Promise<number> {
  const expired = await db
    .selectFrom("auditRecords")
    .select("id")
    .where("id", "<", idAt(beforeMillis))
    .where("createdAtMillis", "<", beforeMillis)
    .where(hasEnded)
    .orderBy("id")
    .limit(limit)
    .execute();
  const last = expired.at(-1)?.id;
  if (last === undefined) return 0;
  await db
    .insertInto("auditRetention")
    .values({ deletedBefore: beforeMillis })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await db.deleteFrom("auditRetention").where("deletedBefore", "<", beforeMillis).execute();
  const { numDeletedRows } = await db
    .deleteFrom("auditRecords")
    .where("id", "<=", last)
    .where("createdAtMillis", "<", beforeMillis)
    .where(hasEnded)
    .executeTakeFirst();
  await db
    .deleteFrom("auditOutcomes")
    .where("recordId", "<=", last)
    .where(sql<SqlBool>`not exists (select 1 from audit_records where audit_records.id = audit_outcomes.record_id)`)
    .execute();
  return Number(numDeletedRows);
}
