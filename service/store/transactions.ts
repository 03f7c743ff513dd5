import type { Identifier, TransactionStatus } from "@tiltyard/protocol";
import { fromPath, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";

/** What an audit record and a job are opened with. */
export interface NewTransaction {
  /** Names it in its namespace. */
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
}

/** What the protocol calls a transaction: an audit record with its outcome, or a job. */
export interface TransactionRecord extends NewTransaction {
  readonly createdAtMillis: number;
  readonly updatedAtMillis: number;
}

/** A row of either table; that of an audit record with the status, the time and the reason of its outcome. */
export type TransactionRow = Schema["jobs"] & { readonly reason?: string | null };

/**
 * What separates the objects of a record in their column. Its two indexes by object are of the rows with it and of those
 * without it (migration 0005). The name of a table may have it, too.
 */
export const objectSeparator = "],[";

export function toColumns(opened: NewTransaction): Omit<Schema["audit_records"], "created_at"> & { now: number } {
  return {
    id: opened.id,
    namespace: toPath(opened.namespace),
    operation: opened.operation,
    objects: JSON.stringify(opened.objects),
    principal: opened.principal,
    request_id: opened.requestId,
    status: opened.status,
    properties: JSON.stringify(opened.properties),
    now: Date.now(),
  };
}

export function toRecord(row: TransactionRow): TransactionRecord {
  const { reason = null } = row;
  return {
    id: row.id,
    namespace: fromPath(row.namespace),
    operation: row.operation,
    objects: JSON.parse(row.objects),
    principal: row.principal,
    requestId: row.request_id,
    status: row.status as TransactionStatus,
    properties: { ...JSON.parse(row.properties), ...(reason !== null && { reason }) },
    createdAtMillis: row.created_at,
    updatedAtMillis: row.updated_at,
  };
}
