import type { Identifier, TransactionStatus } from "@tiltyard/protocol";
import { fromPath, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

export interface TransactionRecord {
  /** Names the transaction in its namespace. */
  readonly id: string;
  readonly namespace: Identifier;
  /** The operation id that opened it. */
  readonly operation: string;
  /** The objects that it changes. */
  readonly objects: readonly Identifier[];
  readonly principal: string;
  readonly requestId: string;
  readonly status: TransactionStatus;
  readonly properties: Readonly<Record<string, string>>;
  readonly createdAtMillis: number;
  readonly updatedAtMillis: number;
}

type Row = Schema["transactions"];

const insert = statement((db, p: Omit<Row, "created_at" | "updated_at"> & { readonly now: number }) =>
  db.insertInto("transactions").values({
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

export async function insertTransaction(
  session: Session,
  record: Omit<TransactionRecord, "createdAtMillis" | "updatedAtMillis">,
): Promise<void> {
  await session.run(insert, {
    id: record.id,
    namespace: toPath(record.namespace),
    operation: record.operation,
    objects: JSON.stringify(record.objects),
    principal: record.principal,
    request_id: record.requestId,
    status: record.status,
    properties: JSON.stringify(record.properties),
    now: Date.now(),
  });
}

const find = statement((db, p: { id: string; namespace: string }) =>
  db.selectFrom("transactions").selectAll().where("id", "=", p.id).where("namespace", "=", p.namespace),
);

/** @param identifier The namespace of the transaction, and its id. */
export async function findTransaction(
  session: Session,
  identifier: Identifier,
): Promise<TransactionRecord | undefined> {
  const row = await session.first(find, { id: identifier.at(-1) ?? "", namespace: toPath(identifier.slice(0, -1)) });
  return row && toRecord(row);
}

/** Reads a row of the table. */
export function toRecord(row: Row): TransactionRecord {
  return {
    id: row.id,
    namespace: fromPath(row.namespace),
    operation: row.operation,
    objects: JSON.parse(row.objects),
    principal: row.principal,
    requestId: row.request_id,
    status: row.status as TransactionStatus,
    properties: JSON.parse(row.properties),
    createdAtMillis: row.created_at,
    updatedAtMillis: row.updated_at,
  };
}

const update = statement((db, p: { id: string; status: string; properties: string; updated_at: number }) =>
  db
    .updateTable("transactions")
    .set({ status: p.status, properties: p.properties, updated_at: p.updated_at })
    .where("id", "=", p.id),
);

/** Writes what may change of a transaction: its status and its properties. */
export async function updateTransaction(session: Session, record: TransactionRecord): Promise<void> {
  await session.run(update, {
    id: record.id,
    status: record.status,
    properties: JSON.stringify(record.properties),
    updated_at: record.updatedAtMillis,
  });
}

const setSucceeded = statement((db, p: { id: string; updated_at: number }) =>
  db.updateTable("transactions").set({ status: "Succeeded", updated_at: p.updated_at }).where("id", "=", p.id),
);

/** Notes that what a transaction was to do is done. */
export async function succeedTransaction(session: Session, id: string): Promise<void> {
  await session.run(setSucceeded, { id, updated_at: Date.now() });
}

const setFailed = statement((db, p: { id: string; properties: string; updated_at: number }) =>
  db
    .updateTable("transactions")
    .set({ status: "Failed", properties: p.properties, updated_at: p.updated_at })
    .where("id", "=", p.id),
);

/** Notes that what a transaction did was taken back. */
export async function failTransaction(session: Session, id: string, reason: string): Promise<void> {
  await session.run(setFailed, { id, properties: JSON.stringify({ reason }), updated_at: Date.now() });
}
