import { randomUUIDv7 } from "node:crypto";
import {
  type AnyContract,
  CatalogError,
  defaultDelimiter,
  formatIdentifier,
  type Identifier,
  type TransactionStatus,
} from "@tiltyard/protocol";
import type { Session, Store } from "../store/store.ts";
import {
  failTransaction,
  insertTransaction,
  succeedTransaction,
  type TransactionRecord,
} from "../store/transactions.ts";

/** The transaction that carries out a request that changes something. */
export interface AuditedTransaction {
  readonly id: string;
  /**
   * How an answer names it: by its namespace and its id, as any object is, so that who may
   * see it is told from its name alone. The namespace holds all that the transaction changes.
   */
  readonly identifier: Identifier;
  /** The identifier as one string, in the delimiter of the request. */
  readonly name: string;
  /** The name of an earlier transaction on the same objects: a request that is repeated answers that one. */
  nameOf(id: string): string;
  /** Writes down who does what to which object, in the database transaction that does it. */
  record(session: Session): Promise<void>;
}

/** Who does something, and in which request. */
export interface Actor {
  readonly principal: { readonly name: string };
  readonly requestId: string;
}

/** Who does something, and how an answer to that is written. */
export interface By {
  readonly caller: Actor;
  readonly request?: { readonly delimiter: string };
}

/** Whom the audit names for what is done at the command line. */
export const operator: By = { caller: { principal: { name: "operator" }, requestId: "" } };
/** Whom it names for what was done without a request to the catalog. */
export const unknownActor: Actor = { principal: { name: "unknown" }, requestId: "" };

export interface Change extends By {
  /** The operation that is carried out: a contract, or what the catalog does by itself. */
  readonly contract: Pick<AnyContract, "operationId">;
  /** The identifiers of what is changed, the main one first. */
  readonly objects: readonly Identifier[];
  /** Succeeded for what is done at once. */
  readonly status?: TransactionStatus;
  readonly properties?: Readonly<Record<string, string>>;
}

export function openTransaction(change: Change): AuditedTransaction {
  const { contract, request, caller, objects, status = "Succeeded", properties = {} } = change;
  const delimiter = request?.delimiter ?? defaultDelimiter;
  const namespace = commonNamespace(objects);
  const id = nextId();
  const nameOf = (each: string) => formatIdentifier([...namespace, each], delimiter);
  return {
    id,
    identifier: [...namespace, id],
    name: nameOf(id),
    nameOf,
    record: (session) =>
      insertTransaction(session, {
        id,
        namespace,
        operation: contract.operationId,
        objects,
        principal: caller.principal.name,
        requestId: caller.requestId,
        status,
        properties,
      }),
  };
}

/**
 * Carries out a change that is not in the database. What is to be done is written down before,
 * so that nothing is done that nobody knows of; what became of it, afterwards. A transaction that
 * stays `Running` broke off, or its end could not be written down.
 *
 * @param transaction One that was opened as Running.
 */
export async function carryOut<Result>(
  store: Store,
  transaction: AuditedTransaction,
  work: () => Promise<Result>,
): Promise<Result> {
  await store.write((session) => transaction.record(session));
  try {
    const result = await work();
    await store.write((session) => succeedTransaction(session, transaction.id)).catch(ignore);
    return result;
  } catch (error) {
    const reason = error instanceof CatalogError ? error.message : "the service failed";
    await store.write((session) => failTransaction(session, transaction.id, reason)).catch(ignore);
    throw error;
  }
}

/** What was done is done, whether that can be written down or not. */
function ignore(): void {}

/** The facts of a transaction that its `context` answers. */
export function contextOf(record: TransactionRecord): Record<string, string> {
  return {
    operation: record.operation,
    objects: JSON.stringify(record.objects),
    principal: record.principal,
    request_id: record.requestId,
    created_at: new Date(record.createdAtMillis).toISOString(),
    updated_at: new Date(record.updatedAtMillis).toISOString(),
  };
}

const millisLength = "xxxxxxxx-xxxx".length;
const lastDigits = 12;
let lastId = "";

/**
 * Ids sort by the time they were made, so that new rows go to the end of the index. Within a
 * millisecond, or while the clock is put back, each of this process is one more than the one before.
 */
function nextId(): string {
  const fresh = randomUUIDv7();
  const next = (Number.parseInt(lastId.slice(-lastDigits), 16) + 1).toString(16).padStart(lastDigits, "0");
  const isLater = fresh.slice(0, millisLength) > lastId.slice(0, millisLength);
  lastId = isLater || next.length > lastDigits ? fresh : lastId.slice(0, -lastDigits) + next;
  return lastId;
}

/** The innermost namespace that all the objects are in. */
function commonNamespace(objects: readonly Identifier[]): Identifier {
  const [first = [], ...others] = objects.map((object) => object.slice(0, -1));
  const differs = first.findIndex((part, index) => others.some((other) => other[index] !== part));
  return differs === -1 ? first : first.slice(0, differs);
}
