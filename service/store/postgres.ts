import { CatalogError, messageOf } from "@tiltyard/protocol";
import pRetry, { type RetryContext } from "p-retry";
import type pg from "pg";
import { RateLimiterMemory, RateLimiterPostgres } from "rate-limiter-flexible";
import { describeDatabase, noDatabase, type PostgresDatabase } from "./database.ts";
import { postgres } from "./dialect.ts";
import { hasSchema, migrate } from "./migrate.ts";
import { explain, isAway, isUnavailable, isWorthAnotherAttempt } from "./postgres-errors.ts";
import { openPool, openPostgres } from "./postgres-pool.ts";
import { createQueries } from "./queries.ts";
import { type RunQuery, withRecords } from "./records.ts";
import type { Limiter, Session, Store, WriteOptions } from "./store.ts";

/** The maximum duration of a query. Longer ones have lost their server. */
const queryTimeoutMs = 15_000;
/** The longest time that a process which pauses within a transaction can block others. */
const idleInTransactionTimeoutMs = 15_000;

/**
 * The backoff between attempts of a conflicting transaction. Without randomness, the same transactions would conflict
 * again.
 */
const retries = { retries: 14, minTimeout: 2, maxTimeout: 500, factor: 2, randomize: true };
/** The attempt at which a constraint violation counts as a bug. */
const constraintAttemptsMax = 4;

/**
 * Connects to PostgreSQL and migrates the schema. A lock serializes the migrations of several processes that start at
 * once.
 */
export async function openPostgresStore(
  database: PostgresDatabase,
  { mustExist = false }: { readonly mustExist?: boolean } = {},
): Promise<Store> {
  const migrating = openPostgres<unknown>(database);
  let exists = true;
  try {
    if (mustExist) exists = await hasSchema(migrating);
    if (exists) await migrate(migrating, postgres);
  } catch (error) {
    throw asStartFailure(error, database);
  } finally {
    await migrating.destroy();
  }
  if (!exists) throw noDatabase(describeDatabase(database));
  return new PostgresStore(
    openPool(database, {
      max: database.connectionsMax,
      query_timeout: queryTimeoutMs,
      statement_timeout: queryTimeoutMs,
      idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    }),
  );
}

/**
 * A store whose transactions run concurrently, each on a connection of the pool. A transaction sees the database as of
 * its start and is retried if it changes a row that another one has changed since. `serializable` would enforce every
 * rule without locks but treats neighbours in an index as conflicts. In a small catalog, writers of different tables
 * would then block each other's commits.
 */
class PostgresStore implements Store {
  readonly read: Session;
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.read = createSession((text, values) =>
      pool.query(text, values).catch((error) => {
        throw explain(error);
      }),
    );
  }

  /** Reads without a cache, because PostgreSQL has no cheap way to detect the commits of other transactions. */
  cached<Result>(_: string, read: () => Promise<Result>): Promise<Result> {
    return read();
  }

  async write<Result>(work: (session: Session) => Promise<Result>, { locking }: WriteOptions = {}): Promise<Result> {
    const attempt = () =>
      inTransaction(this.#pool, "begin isolation level repeatable read", async (client) => {
        // The lock must precede the first query, which fixes the snapshot of the transaction.
        if (locking !== undefined) await client.query(`lock table ${locking} in share row exclusive mode`);
        return work({ ...createSession((text, values) => client.query(text, values)), locked: locking });
      });
    const shouldRetry = ({ error, attemptNumber }: RetryContext) =>
      isWorthAnotherAttempt(error, attemptNumber, constraintAttemptsMax);
    return pRetry(attempt, { ...retries, shouldRetry }).catch((error: unknown) => {
      throw explain(error);
    });
  }

  /** Counts in the database, or in each process while the database is unavailable. */
  createLimiter({ points, durationSeconds: duration }: { points: number; durationSeconds: number }): Limiter {
    return new RateLimiterPostgres({
      storeClient: { query: ({ text, values }: pg.QueryConfig) => this.#pool.query(text, values) },
      storeType: "pool",
      tableName: "rate_limits",
      tableCreated: true,
      keyPrefix: "",
      points,
      duration,
      // Rejects a caller over its limit without a query.
      inMemoryBlockOnConsumed: points + 1,
      insuranceLimiter: new RateLimiterMemory({ points, duration }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }
}

/** Creates a session. Its queries have no names: prepared queries break when a later release changes their tables. */
function createSession(query: (text: string, values: unknown[]) => Promise<pg.QueryResult>): Session {
  const run: RunQuery = async ({ sql, parameters }) => {
    const { rows, rowCount } = await query(sql, [...parameters]);
    return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
  };
  return { db: createQueries("postgres", withRecords(run)), now: postgres.now };
}

/** Runs `work` between `begin` and `commit` on its own connection. Errors are those of the driver. */
async function inTransaction<Result>(
  pool: pg.Pool,
  begin: string,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let isBroken = false;
  try {
    await client.query(begin);
    const result = await work(client);
    const { command } = await client.query("commit");
    if (command !== "COMMIT") throw new Error("the transaction continued after one of its queries failed");
    return result;
  } catch (error) {
    isBroken = isUnavailable(error);
    if (!isBroken)
      await client.query("rollback").catch(() => {
        isBroken = true;
      });
    throw error;
  } finally {
    client.release(isBroken);
  }
}

/** Converts a transient failure to a CatalogError, and one that the operator must fix to an Error. */
function asStartFailure(error: unknown, database: PostgresDatabase): Error {
  const explained = explain(error);
  const cause = explained instanceof CatalogError ? explained.cause : explained;
  const reason = messageOf(cause);
  const message = `The catalog cannot use its database at ${describeDatabase(database)}: ${reason}`;
  return isAway(error) ? new CatalogError("ServiceUnavailable", message, { cause }) : new Error(message);
}
