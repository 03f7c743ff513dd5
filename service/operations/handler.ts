import type { AnyContract, Identifier, RequestOf, ResponseOf } from "@tiltyard/protocol";
import { isAllowed, type Principal } from "../auth/authenticator.ts";
import type { CommitParts } from "../commits/parts.ts";
import type { Locations } from "../domain/locations.ts";
import type { Caller } from "../domain/transaction.ts";
import type { Rows } from "../rows/rows.ts";
import type { CredentialVendors } from "../storage/credentials.ts";
import type { Worker } from "../tasks/worker.ts";

/** What operations work with. */
export interface Catalog extends CommitParts {
  /** Hands out credentials for tables; undefined where none are handed out. */
  readonly credentials: CredentialVendors | undefined;
  readonly locations: Locations;
  /** Namespaces of the root with Geneva's records of their own. */
  readonly isolatedNamespaces: readonly string[];
  /** Does the deferred work of requests. */
  readonly worker: Pick<Worker, "wake">;
  /** Reads and writes the rows of tables. */
  readonly rows: Rows;
  /** Whether operations on rows are done; else they are answered with 406. */
  readonly dataOperations: boolean;
  /** Drops the cached roles of a principal, so that a change counts from its next request on. */
  readonly forgetRoles: (principal: string) => void;
  /** How long a dropped table can be undropped; 0 deletes it at once. */
  readonly dropRetentionMs: number;
}

/** The caller of an operation, with its rights and what it sends. */
export interface AuthorizedCaller extends Caller {
  readonly principal: Principal;
  /** The Arrow stream of an operation that takes one; empty for the others. */
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Does one operation. Its request was parsed and authorized; what it answers is sent as it
 * is. A CatalogError that it throws becomes the error body.
 */
export type Handler<C extends AnyContract> = (
  request: RequestOf<C>,
  catalog: Catalog,
  caller: AuthorizedCaller,
) => Promise<ResponseOf<C>>;

/** Returns a function that answers whether the caller is a writer of an object. */
export function mayWrite({ principal }: AuthorizedCaller): (object: Identifier) => boolean {
  return (object) => isAllowed(principal, { role: "writer", object });
}

/** Returns a function that answers whether the caller is a reader of an object. */
export function mayRead({ principal }: AuthorizedCaller): (object: Identifier) => boolean {
  return (object) => isAllowed(principal, { role: "reader", object });
}
