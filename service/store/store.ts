import type { RateLimiterAbstract } from "rate-limiter-flexible";
import type { Statement } from "./statement.ts";

/** A database table that a transaction may keep all others from changing. */
export type LockableTable = "tables" | "jobs";

/** Runs statements, each with its values. */
export interface Session {
  /** The database table that no other session changes while this one lasts. */
  readonly locked: LockableTable | undefined;
  all<Parameters extends object, Row>(statement: Statement<Parameters, Row>, parameters: Parameters): Promise<Row[]>;
  /** Of a statement with one column: in SQLite, many values take half the time that as many rows take. */
  values<Parameters extends object, Value>(
    statement: Statement<Parameters, Readonly<Record<string, Value>>>,
    parameters: Parameters,
  ): Promise<Value[]>;
  first<Parameters extends object, Row>(
    statement: Statement<Parameters, Row>,
    parameters: Parameters,
  ): Promise<Row | undefined>;
  /** @returns How many rows were changed. */
  run<Parameters extends object>(statement: Statement<Parameters, unknown>, parameters: Parameters): Promise<number>;
}

/** What limits how often something may happen; it is of rate-limiter-flexible. */
export type Limiter = Pick<RateLimiterAbstract, "consume">;

/** How a transaction is run. */
export interface WriteOptions {
  /** The table that must not change while it runs. */
  readonly locking?: LockableTable | undefined;
}

/**
 * The catalog's database. Reading sees what was committed before it began. Everything here
 * throws CatalogError ServiceUnavailable while the database cannot be used.
 */
export interface Store extends AsyncDisposable {
  readonly read: Session;
  /**
   * The text that `make` makes, or made before for the same key when nothing was committed since.
   *
   * @param make Makes it of what this database holds, and of nothing else.
   */
  memoized(key: string, make: () => Promise<string>): Promise<string>;
  /**
   * Runs `work` in a transaction and resolves when its changes are durable. When `work`
   * throws, the transaction is rolled back and the error is thrown. `work` may only use the
   * session: it shares its commit with others and may be retried.
   *
   * Of two concurrent transactions that change the same row, or would violate a constraint of the
   * schema together, one is retried and sees the other's changes. That does not protect a rule
   * about rows that are only read, or that do not exist: name their table in `locking`.
   */
  write<Result>(work: (session: Session) => Promise<Result>, options?: WriteOptions): Promise<Result>;
  /** Makes a limiter that counts together with all processes on this database. */
  createLimiter(options: { readonly points: number; readonly durationSeconds: number }): Limiter;
}
