import {
  type AnyContract,
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

export interface Caller {
  readonly principal: Principal;
  readonly requestId: string;
  /** Aborted when the client disconnects before the response; undefined for the catalog's own calls. */
  readonly signal?: AbortSignal;
}

/** The origin of a change: its caller and the delimiter of its request. */
export interface Origin {
  readonly caller: Caller;
  readonly request?: { readonly delimiter: string };
}

/** The principal that the audit records for changes without a request to the catalog. */
export const unknownCaller: Caller = { principal: { name: "unknown", grants: [] }, requestId: "" };

/** The caller of changes and reads by which the catalog itself looks after Geneva's records. */
export const catalogCaller: Caller = { principal: { name: catalogPrincipal, grants: [] }, requestId: "" };

export interface Change extends Origin {
  /** The operation: a contract, or an internal one of the catalog. */
  readonly contract: Pick<AnyContract, "operationId">;
  /** The identifiers of the changed objects, the main one first. */
  readonly objects: readonly Identifier[];
  readonly properties?: Readonly<Record<string, string>> | undefined;
}

export interface TableChange extends Omit<Change, "objects"> {
  readonly request: { readonly id: Identifier; readonly delimiter: string };
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
export function newTransaction(change: Change) {
  const { contract, request, caller, objects, properties = {} } = change;
  const delimiter = request?.delimiter ?? defaultDelimiter;
  const namespace = commonNamespace(objects);
  const id = nextTransactionId();
  const nameOf = (each: string) => formatIdentifier([...namespace, each], delimiter);
  const names: TransactionNames = { id, identifier: [...namespace, id], name: nameOf(id), nameOf };
  const opened = {
    id,
    namespace,
    operation: contract.operationId,
    objects,
    principal: caller.principal.name,
    requestId: caller.requestId,
    properties,
  };
  return { names, opened };
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
