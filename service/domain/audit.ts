import { CatalogError } from "@tiltyard/protocol";
import { insertAuditOutcome, insertAuditRecord } from "../store/audit.ts";
import type { Session, Store } from "../store/store.ts";
import { type Caller, type Change, newTransaction, type Origin, type TransactionNames } from "./transaction.ts";

/** The principal that the audit names for commands of the operator. */
export const operator: Origin = { caller: { principal: { name: "operator" }, requestId: "" } };
/** The principal that it names for changes without a request to the catalog. */
export const unknownCaller: Caller = { principal: { name: "unknown" }, requestId: "" };

/** A record of the audit that is still to be written. */
export interface AuditEntry extends TransactionNames {
  /** Records the principal, the operation and its objects, in the database transaction of the change. */
  record(session: Session): Promise<void>;
  /** As `record`, for a change outside of the database that begins after this is durable. */
  recordRunning(session: Session): Promise<void>;
}

/** What the audit is to say about a change. A record never changes. */
export function prepareAudit(change: Change): AuditEntry {
  const { names, opened } = newTransaction(change);
  return {
    ...names,
    record: (session) => insertAuditRecord(session, { ...opened, status: "Succeeded" }),
    recordRunning: (session) => insertAuditRecord(session, { ...opened, status: "Running" }),
  };
}

/**
 * Carries out a change that is not in the database. The intent is recorded before, so that no change is
 * unrecorded, and the outcome after. A record that stays `Running` was interrupted, or its outcome could
 * not be recorded.
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

/** An outcome that cannot be recorded changes nothing: the work has been done, or has failed. */
function ignore(): void {}
