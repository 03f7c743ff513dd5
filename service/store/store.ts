import { CatalogError } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import { type RateLimiterAbstract, RateLimiterMemory } from "rate-limiter-flexible";
import type { Dialect } from "./dialect.ts";
import type { Schema } from "./schema.ts";

export interface Page<Key> {
  /** The key of the item that the page follows; the beginning when undefined. */
  readonly after?: Key | undefined;
  readonly limit: number;
}

export type LockableTable = "tables" | "jobs";

/** Runs queries, in a transaction or outside of one. */
export interface Session extends Pick<Dialect, "now" | "position"> {
  readonly db: Kysely<Schema>;
  /** Returns the milliseconds since the epoch on the clock of `now`. Rules about times that the database stores use it. */
  readonly time: () => number;
  /** The database table that no other session can change during this one. */
  readonly locked?: LockableTable | undefined;
  /**
   * Returns the result of `read`, or outside of a transaction that of an earlier call with the same key since the last
   * commit. The caller must not change the result.
   *
   * @param read Derives its result from the content of this database alone. Undefined is not cached.
   */
  readonly cached: <Result extends object | undefined>(key: string, read: () => Promise<Result>) => Promise<Result>;
}

/** Reads without a cache. */
export const uncached: Session["cached"] = (_, read) => read();

export type Limiter = Pick<RateLimiterAbstract, "consume" | "points">;

export interface WriteOptions {
  readonly locking?: LockableTable | undefined;
}

/** The connection broke during the commit of a transaction, so its changes may be durable. */
export class CommitInDoubtError extends CatalogError {
  constructor(cause: unknown) {
    super("ServiceUnavailable", "The connection to the catalog's database broke during the commit; try again.", {
      cause,
    });
  }
}

/** The database. A read sees all earlier commits. Everything throws CatalogError ServiceUnavailable. */
export interface Store extends AsyncDisposable {
  readonly read: Session;
  /**
   * Runs `work` in a transaction and resolves when its changes are durable. If `work` throws, the transaction is rolled
   * back and the error is thrown. `work` must use only the session, must await each query, may share its commit with
   * others and may be retried.
   *
   * If two concurrent transactions change the same row or together violate a constraint of the schema, one of them is
   * retried and sees the changes of the other. A rule about rows that are only read, or that do not exist, needs
   * `locking`.
   */
  write<Result>(work: (session: Session) => Promise<Result>, options?: WriteOptions): Promise<Result>;
  /** Creates a limiter, which counts across all processes if the database is shared. */
  createLimiter(options: { readonly points: number; readonly durationSeconds: number }): Limiter;
}

/** Creates a limiter that counts only the requests of this process. */
export const createMemoryLimiter: Store["createLimiter"] = ({ points, durationSeconds }) =>
  new RateLimiterMemory({ points, duration: durationSeconds });
