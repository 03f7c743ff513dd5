import { type Identifier, openStatuses, type TransactionStatus } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";
import { fromPath, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";

/** A new audit record or job. */
export interface NewTransaction {
  /** The id, which is unique in its namespace. */
  readonly id: string;
  readonly namespace: Identifier;
  /** The id of the operation that opened it. */
  readonly operation: string;
  /** The changed objects. */
  readonly objects: readonly Identifier[];
  readonly principal: string;
  readonly requestId: string;
  readonly status: TransactionStatus;
  readonly properties: Readonly<Record<string, string>>;
}

/** A transaction of the protocol: an audit record with its outcome, or a job. */
export interface TransactionRecord extends NewTransaction {
  readonly createdAtMillis: number;
  readonly updatedAtMillis: number;
}

/** A row of an audit record with the status, the time and the reason of its outcome. */
type AuditRow = Schema["audit_records"] & { readonly updated_at: number; readonly reason: string | null };

/**
 * The separator of the objects of a record in their column. One index covers the rows with it, another those without it
 * (migration 0005). The name of a table may contain it.
 */
export const objectSeparator = "],[";

/** Selects the open jobs. One index covers them, but only if their statuses are literals (migration 0005). */
export const isOpen = sql<SqlBool>`t.status in (${sql.join(openStatuses.map((status) => sql.lit(status)))})`;

export function toColumns(opened: NewTransaction): Schema["audit_records"] {
  return {
    id: opened.id,
    namespace: toPath(opened.namespace),
    operation: opened.operation,
    objects: JSON.stringify(opened.objects),
    principal: opened.principal,
    request_id: opened.requestId,
    status: opened.status,
    properties: JSON.stringify(opened.properties),
    created_at: Date.now(),
  };
}

/** Replaces U+0000 in the output of programs, which PostgreSQL cannot store as text. */
export function toStoredText(text: string): string {
  return text.replaceAll("\0", "\ufffd");
}

/** Returns the parameters that find a transaction by its namespace and id. */
export function keyOf(identifier: Identifier): { readonly id: string; readonly namespace: string } {
  return { id: identifier.at(-1) ?? "", namespace: toPath(identifier.slice(0, -1)) };
}

/** Converts the columns that audit records and jobs share. */
export function toRecord(row: Omit<AuditRow, "reason">): TransactionRecord {
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

export function toAuditRecord(row: AuditRow): TransactionRecord {
  const record = toRecord(row);
  return row.reason === null ? record : { ...record, properties: { ...record.properties, reason: row.reason } };
}
