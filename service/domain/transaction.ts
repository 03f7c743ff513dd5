import {
  CatalogError,
  catalogPrincipal,
  defaultDelimiter,
  formatIdentifier,
  type Identifier,
} from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import { insertAuditOutcome, insertAuditRecord } from "../store/audit.ts";
import type { JobRecord, JobSummaryRecord } from "../store/jobs.ts";
import type { Session, Store, WriteOptions } from "../store/store.ts";
import { nextTransactionId, type TransactionRecord } from "../store/transactions.ts";

/** The principal and the request that cause a change or a read. */
export interface Origin {
  readonly principal: Principal;
  readonly requestId: string;
  /** The delimiter of identifiers in the response. */
  readonly delimiter: string;
  /** Aborted when the client disconnects before the response; undefined for the catalog's own calls. */
  readonly signal?: AbortSignal;
}

export interface Caller extends Origin {
  /** The id of the operation, which may be an internal one of the catalog. */
  readonly operation: string;
}

/** Returns the origin of work without a request to the catalog. */
export function originOf(principal: Principal): Origin {
  return { principal, requestId: "", delimiter: defaultDelimiter };
}

/** The origin that the audit records for changes without a request to the catalog. */
export const unknownOrigin = originOf({ name: "unknown", grants: [] });

/** The origin of changes and reads by which the catalog itself looks after Geneva's records. */
export const catalogOrigin = originOf({ name: catalogPrincipal, grants: [] });

export interface Change {
  readonly caller: Caller;
  /** The identifiers of the changed objects, the main one first. */
  readonly objects: readonly Identifier[];
  readonly properties?: Readonly<Record<string, string>> | undefined;
}

export interface TableChange extends Omit<Change, "objects"> {
  readonly request: { readonly id: Identifier };
}

/** The names of a transaction of the protocol: an audit record or a job. */
export interface TransactionNames {
  readonly id: string;
  /**
   * The identifier in responses. It consists of a namespace and an id, like that of any object, so that the name alone
   * determines which callers may see the transaction. The namespace contains all changed objects.
   */
  readonly identifier: Identifier;
  readonly name: string;
  /** Returns the name of an earlier transaction on the same objects, which a retry reports. */
  nameOf(id: string): string;
}

/** Assigns an id and names to a change, which may be needed before it is recorded. */
export function newTransaction({ caller, objects, properties = {} }: Change) {
  const { operation, principal, requestId, delimiter } = caller;
  const namespace = commonNamespace(objects);
  const id = nextTransactionId();
  const nameOf = (each: string) => formatIdentifier([...namespace, each], delimiter);
  const names: TransactionNames = { id, identifier: [...namespace, id], name: nameOf(id), nameOf };
  return { names, opened: { id, namespace, operation, objects, principal: principal.name, requestId, properties } };
}

/** The maximum length of the identifiers of a batch as JSON. Its audit record, which lists read, contains all of them. */
const identifiersLengthMax = 1024 * 1024;

/** Requires that the audit record of a batch can contain its identifiers. @throws CatalogError InvalidInput */
export function requireRecordable(objects: readonly Identifier[]): void {
  if (JSON.stringify(objects).length > identifiersLengthMax)
    throw new CatalogError(
      "InvalidInput",
      `the identifiers of a batch have at most ${identifiersLengthMax} characters: send several batches`,
    );
}

export interface AuditEntry extends TransactionNames {
  /** Records the change; as `Running` if it is outside the database and begins only after this record is durable. */
  record(session: Session, status?: "Succeeded" | "Running"): Promise<void>;
}

/** Prepares the audit record of a change. The inserted record never changes. */
export function prepareAudit(change: Change): AuditEntry {
  const { names, opened } = newTransaction(change);
  return {
    ...names,
    record: (session, status = "Succeeded") => insertAuditRecord(session, { ...opened, status }),
  };
}

/** Records a change in its database transaction. @returns The name of the transaction. */
export async function recordAudit(session: Session, change: Change): Promise<string> {
  const audit = prepareAudit(change);
  await audit.record(session);
  return audit.name;
}

/** Applies a change and records it in one database transaction. @returns The transaction in the format of responses. */
export function makeAudited(
  store: Store,
  change: Change,
  work: (session: Session) => Promise<unknown>,
  options?: WriteOptions,
) {
  return store.write(async (session) => {
    await work(session);
    return { transaction_id: await recordAudit(session, change) };
  }, options);
}

/**
 * Executes a change outside the database. The intent is recorded before the change and the outcome after it, so that
 * every change has a record. If a record stays `Running`, the change was interrupted or its outcome could not be
 * recorded.
 */
export async function carryOut(store: Store, audit: AuditEntry, work: () => Promise<void>): Promise<void> {
  // A failure to record the outcome does not affect the result of the work.
  const end = (status: "Succeeded" | "Failed", reason?: string) =>
    store.write((session) => insertAuditOutcome(session, audit.id, status, reason)).catch(() => undefined);
  await store.write((session) => audit.record(session, "Running"));
  try {
    await work();
    await end("Succeeded");
  } catch (error) {
    await end("Failed", error instanceof CatalogError ? error.message : "the service failed");
    throw error;
  }
}

/** Returns the properties in responses: those of clients and, of a job, also its parameters as text and its reason. */
export function propertiesOf(record: TransactionRecord | JobSummaryRecord | JobRecord): Record<string, string> {
  if (!("tableId" in record)) return { ...record.properties };
  const { properties, column, reason } = record;
  const parameters = "parameters" in record ? record.parameters : column === undefined ? {} : { column };
  return { ...properties, ...textsOf(parameters), ...(reason !== undefined && { reason }) };
}

/** Returns parameters as text for protocols whose properties have no other type. */
export function textsOf(parameters: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
}

function commonNamespace(objects: readonly Identifier[]): Identifier {
  const [first = [], ...others] = objects.map((object) => object.slice(0, -1));
  const differs = first.findIndex((part, index) => others.some((other) => other[index] !== part));
  return differs === -1 ? first : first.slice(0, differs);
}
