import { CatalogError, catalogPrincipal } from "@tiltyard/protocol";
import { insertAuditOutcome, insertAuditRecord } from "../store/audit.ts";
import type { Session, Store } from "../store/store.ts";
import { type Caller, type Change, newTransaction, type Origin, type TransactionNames } from "./transaction.ts";

/** The principal that the audit records for commands of the operator. */
export const operator: Origin = { caller: { principal: { name: "operator" }, requestId: "" } };
/** The principal that the audit records for changes without a request to the catalog. */
export const unknownCaller: Caller = { principal: { name: "unknown" }, requestId: "" };

/** The caller of changes and reads by which the catalog itself looks after Geneva's records. */
export const catalogCaller: Caller = { principal: { name: catalogPrincipal }, requestId: "" };

/** An audit record before its insertion. */
export interface AuditEntry extends TransactionNames {
  /** Records the principal, the operation and its objects in the database transaction of the change. */
  record(session: Session): Promise<void>;
  /** Records a change outside the database that begins only after this record is durable. */
  recordRunning(session: Session): Promise<void>;
}

/** Prepares the audit record of a change. The inserted record never changes. */
export function prepareAudit(change: Change): AuditEntry {
  const { names, opened } = newTransaction(change);
  return {
    ...names,
    record: (session) => insertAuditRecord(session, { ...opened, status: "Succeeded" }),
    recordRunning: (session) => insertAuditRecord(session, { ...opened, status: "Running" }),
  };
}

/** Records a change in its database transaction. @returns The name of the transaction. */
export async function recordAudit(session: Session, change: Change): Promise<string> {
  const audit = prepareAudit(change);
  await audit.record(session);
  return audit.name;
}

/**
 * Executes a change outside the database. The intent is recorded before the change and the outcome after it, so that
 * every change has a record. If a record stays `Running`, the change was interrupted or its outcome could not be
 * recorded.
 */
export async function carryOut<Result>(store: Store, audit: AuditEntry, work: () => Promise<Result>): Promise<Result> {
  await store.write((session) => audit.recordRunning(session));
  try {
    const result = await work();
    await store.write((session) => insertAuditOutcome(session, audit.id, "Succeeded")).catch(ignore);
    return result;
  } catch (error) {
    const reason = error instanceof CatalogError ? error.message : "the service failed";
    await store.write((session) => insertAuditOutcome(session, audit.id, "Failed", reason)).catch(ignore);
    throw error;
  }
}

/** Ignores a failure to record the outcome, which does not affect the result of the work. */
function ignore(): void {}
