import { type AnyContract, defaultDelimiter, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import { nextTransactionId } from "../store/transaction-ids.ts";
import type { NewTransaction, TransactionRecord } from "../store/transactions.ts";

/** The principal that calls an operation, and the id of its request. */
export interface Caller {
  readonly principal: Pick<Principal, "name"> & Partial<Principal>;
  readonly requestId: string;
}

/** Where a change comes from: its caller, and the delimiter of its request. */
export interface Origin {
  readonly caller: Caller;
  readonly request?: { readonly delimiter: string };
}

export interface Change extends Origin {
  /** The operation: a contract, or one of the catalog's own. */
  readonly contract: Pick<AnyContract, "operationId">;
  /** The identifiers of what is changed, the main one first. */
  readonly objects: readonly Identifier[];
  readonly properties?: Readonly<Record<string, string>>;
}

/** The names of what the protocol calls a transaction: an audit record, or a job. */
export interface TransactionNames {
  readonly id: string;
  /**
   * How an answer names it: by its namespace and its id, as any object is, so that its name alone
   * decides the right to see it. The namespace holds all that the transaction changes.
   */
  readonly identifier: Identifier;
  /** The identifier as one string, in the delimiter of the request. */
  readonly name: string;
  /** The name of an earlier transaction on the same objects: a retry answers that one. */
  nameOf(id: string): string;
}

/** Gives a change its id and its names, which may be needed before it is recorded. */
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
      apiKeyId: caller.principal.apiKeyId,
      requestId: caller.requestId,
      properties,
    },
  };
}

/** What `DescribeTransaction` and `AlterTransaction` answer. */
export function toAnswer(record: TransactionRecord) {
  return {
    status: record.status,
    context: {
      operation: record.operation,
      objects: JSON.stringify(record.objects),
      principal: record.principal,
      request_id: record.requestId,
      created_at: new Date(record.createdAtMillis).toISOString(),
      updated_at: new Date(record.updatedAtMillis).toISOString(),
    },
    properties: { ...record.properties },
  };
}

/** The innermost namespace that all the objects are in. */
function commonNamespace(objects: readonly Identifier[]): Identifier {
  const [first = [], ...others] = objects.map((object) => object.slice(0, -1));
  const differs = first.findIndex((part, index) => others.some((other) => other[index] !== part));
  return differs === -1 ? first : first.slice(0, differs);
}
