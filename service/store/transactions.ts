import { randomUUID } from "node:crypto";
import { type Identifier, openStatuses } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";
import { toPath, toRecord } from "./path.ts";
import type { RecordOf } from "./schema.ts";

/** A new audit record or job. Its id is unique in its namespace. */
export interface NewTransaction extends Omit<RecordOf<"auditRecords">, "namespace" | "createdAtMillis"> {
  readonly namespace: Identifier;
}

/** A transaction of the protocol: an audit record with its outcome, or a job. */
export interface TransactionRecord extends NewTransaction {
  readonly createdAtMillis: number;
  readonly updatedAtMillis: number;
}

/** A row of an audit record with the time and the reason of its outcome. */
type AuditRow = RecordOf<"auditRecords"> & Pick<RecordOf<"jobs">, "updatedAtMillis" | "reason">;

/** The separator of objects, which a name may contain. One index covers the rows with it, one the others. */
export const objectSeparator = "],[";

/** Selects the open jobs. One index covers them, but only if their statuses are literals. */
export const isOpen = sql<SqlBool>`t.status in (${sql.join(openStatuses.map((status) => sql.lit(status)))})`;

export function toRow<Opened extends NewTransaction>(opened: Opened) {
  return { ...opened, namespace: toPath(opened.namespace), createdAtMillis: Date.now() };
}

/** Replaces U+0000 in texts from outside of requests, which PostgreSQL cannot store. */
export function toStoredText(text: string): string {
  return text.replaceAll("\0", "\ufffd");
}

export function toAuditRecord({ reason, ...row }: AuditRow): TransactionRecord {
  const record = toRecord(row);
  return reason === undefined ? record : { ...record, properties: { ...record.properties, reason } };
}

const millisLength = "xxxxxxxx-xxxx".length;
const lastDigits = 12;
let lastId = "";

const afterEveryId = "g";

/**
 * Creates an id for an audit record or a job. Ids sort by the time of their creation, so new rows extend the end of the
 * index. Within a millisecond, or while the clock is set back, each id of this process increments the previous one.
 */
export function nextTransactionId(): string {
  // The result is a UUID of version 4 with the time and the version digit of version 7, which Node 22 cannot create.
  const fresh = `${idAt(Date.now())}-7${randomUUID().slice("xxxxxxxx-xxxx-V".length)}`;
  const next = (Number.parseInt(lastId.slice(-lastDigits), 16) + 1).toString(16).padStart(lastDigits, "0");
  const isLater = fresh.slice(0, millisLength) > lastId.slice(0, millisLength);
  lastId = isLater || next.length > lastDigits ? fresh : lastId.slice(0, -lastDigits) + next;
  return lastId;
}

/** Returns the common prefix of the ids of a time: 48 bits of milliseconds (RFC 9562, UUID version 7). */
export function idAt(millis: number): string {
  if (millis >= 2 ** 48) return afterEveryId;
  const digits = Math.max(0, millis).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}
