import { type AnyContract, defaultDelimiter, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import type { JobRecord } from "../store/jobs.ts";
import { nextTransactionId } from "../store/transaction-ids.ts";
import type { NewTransaction, TransactionRecord } from "../store/transactions.ts";

/** The principal that calls an operation, and the id of its request. */
export interface Caller {
  readonly principal: Pick<Principal, "name"> & Partial<Principal>;
  readonly requestId: string;
}

/** The origin of a change: its caller and the delimiter of its request. */
export interface Origin {
  readonly caller: Caller;
  readonly request?: { readonly delimiter: string };
}

export interface Change extends Origin {
  /** The operation: a contract, or an internal one of the catalog. */
  readonly contract: Pick<AnyContract, "operationId">;
  /** The identifiers of the changed objects, the main one first. */
  readonly objects: readonly Identifier[];
  readonly properties?: Readonly<Record<string, string>> | undefined;
}

/** A change of the table that a request names. */
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
  /** The identifier as a string with the delimiter of the request. */
  readonly name: string;
  /** Returns the name of an earlier transaction on the same objects, which a retry reports. */
  nameOf(id: string): string;
}

/** Assigns an id and names to a change, which may be needed before it is recorded. */
export function newTransaction(change: Change): {
  readonly names: TransactionNames;
  readonly opened: Omit<NewTransaction, "status">;
} {
  const { contract, request, caller, objects, properties = {} } = change;
  const delimiter = request?.delimiter ?? defaultDelimiter;
  const namespace = commonNamespace(objects);
  const id = nextTransactionId();
  const nameOf = (each: string) => formatIdentifier([...namespace, each], delimiter);
  return {
    names: { id, identifier: [...namespace, id], name: nameOf(id), nameOf },
    opened: {
      id,
      namespace,
      operation: contract.operationId,
      objects,
      principal: caller.principal.name,
      requestId: caller.requestId,
      properties,
    },
  };
}

/**
 * Returns the properties of a transaction in responses. A job presents its parameters and its reason as properties, in
 * addition to those that clients have set.
 */
export function propertiesOf(record: TransactionRecord | JobRecord): Record<string, string> {
  if (!("parameters" in record)) return { ...record.properties };
  const { properties, parameters, reason } = record;
  return { ...properties, ...parameters, ...(reason !== undefined && { reason }) };
}

/** Returns the innermost namespace that contains all objects. */
function commonNamespace(objects: readonly Identifier[]): Identifier {
  const [first = [], ...others] = objects.map((object) => object.slice(0, -1));
  const differs = first.findIndex((part, index) => others.some((other) => other[index] !== part));
  return differs === -1 ? first : first.slice(0, differs);
}
