import { CatalogError } from "@tiltyard/protocol";
import {
  type CompiledQuery,
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresDialect,
  type QueryResult,
  sql,
} from "kysely";
import pRetry, { type RetryContext } from "p-retry";
import pg, { DatabaseError } from "pg";
import { RateLimiterMemory, RateLimiterPostgres } from "rate-limiter-flexible";
import { cannotUse, describeDatabase, type PostgresDatabase } from "./database.ts";
import { postgres } from "./dialect.ts";
import { migrate } from "./migrate.ts";
import { explain, isWorthAnotherAttempt } from "./postgres-errors.ts";
import { createQueries, PostgresRecordsDialect } from "./queries.ts";
import type { Schema } from "./schema.ts";
import { CommitInDoubtError, type Limiter, type Session, type Store, uncached, type WriteOptions } from "./store.ts";

/** The maximum duration of a query. Longer ones have lost their server. */
const queryTimeoutMs = 15_000;
/** The longest time that a process which pauses within a transaction can block others. */
const idleInTransactionTimeoutMs = 15_000;

/** The backoff after a conflict. Without randomness, the same transactions would conflict again. */
const retries = { retries: 14, minTimeout: 2, maxTimeout: 500, factor: 2, randomize: true };

/** The oldest supported major version. */
const majorVersionMin = 14;

/** Connects to PostgreSQL and migrates the schema. A lock serializes concurrent migrations. */
export async function openPostgresStore(database: PostgresDatabase): Promise<Store> {
  const migrating = openPostgres<unknown>(database);
  try {
    await requireVersion(migrating);
    await migrate(migrating, postgres);
  } catch (error) {
    const explained = explain(error);
    const cause = explained instanceof CatalogError ? explained.cause : explained;
    throw cannotUse(describeDatabase(database), cause);
  } finally {
    await migrating.destroy();
  }
  return new PostgresStore(
    openPool(database, {
      max: database.connectionsMax,
      query_timeout: queryTimeoutMs,
      statement_timeout: queryTimeoutMs,
      idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    }),
  );
}

/** @throws Error if the server is older than the oldest supported version. */
async function requireVersion(db: Kysely<unknown>): Promise<void> {
  const setting = sql<{ version: string }>`select current_setting('server_version_num') as version`;
  const { rows } = await setting.execute(db);
  const major = Math.floor(Number(rows[0]?.version) / 10_000);
  if (major < majorVersionMin)
    throw new Error(`it runs PostgreSQL ${major}, and the catalog requires ${majorVersionMin} or later`);
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
  readonly #writer: Kysely<Schema>;
  readonly #writing = new Set<Promise<unknown>>();

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#writer = createQueries(new PostgresRecordsDialect({ pool }));
    const reading = { createDriver: () => new ReadingDriver(pool) };
    const db = createQueries(Object.assign(new PostgresRecordsDialect({ pool }), reading));
    // PostgreSQL has no cheap way to detect the commits of other transactions.
    this.read = { ...postgres, db, cached: uncached };
  }

  async write<Result>(work: (session: Session) => Promise<Result>, { locking }: WriteOptions = {}): Promise<Result> {
    const transaction = this.#writer.transaction().setIsolationLevel("repeatable read");
    let isCommitting = false;
    const attempt = () => {
      isCommitting = false;
      return transaction.execute(async (db) => {
        // The lock must precede the first query, which fixes the snapshot of the transaction.
        if (locking !== undefined) await sql`lock table ${sql.table(locking)} in share row exclusive mode`.execute(db);
        const result = await work({ ...postgres, db, locked: locking, cached: uncached });
        isCommitting = true;
        return result;
      });
    };
    const shouldRetry = ({ error, attemptNumber }: RetryContext) => isWorthAnotherAttempt(error, attemptNumber);
    const writing = pRetry(attempt, { ...retries, shouldRetry });
    this.#writing.add(writing);
    try {
      return await writing;
    } catch (error) {
      const explained = explain(error);
      // An error of the server itself is a rollback.
      const isInDoubt = isCommitting && explained instanceof CatalogError && !(error instanceof DatabaseError);
      throw isInDoubt ? new CommitInDoubtError(explained.cause) : explained;
    } finally {
      this.#writing.delete(writing);
    }
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
    await Promise.allSettled(this.#writing);
    await this.#pool.end();
  }
}

/** Runs queries outside of transactions. Their errors are converted for the caller. */
class ReadingDriver extends DummyDriver implements DatabaseConnection {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    super();
    this.#pool = pool;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    return this;
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      return { rows: (await this.#pool.query(sql, [...parameters])).rows };
    } catch (error) {
      throw explain(error);
    }
  }

  streamQuery(): never {
    throw new Error("the catalog streams no queries");
  }
}

const connectTimeoutMs = 5_000;
/** The maximum age of a connection, because a failover can leave it at a server that has become read-only. */
const connectionSecondsMax = 600;

/** Creates a pool that opens its connections on demand. */
function openPool(database: PostgresDatabase, options: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    connectionString: database.url,
    application_name: "tiltyard-catalog",
    connectionTimeoutMillis: connectTimeoutMs,
    maxLifetimeSeconds: connectionSecondsMax,
    keepAlive: true,
    types: { getTypeParser },
    ...options,
  });
  // A query on a broken connection fails, and its caller handles the error. Without listeners, an error of an idle
  // connection would end the process.
  const ignore = () => {};
  pool.on("error", ignore);
  pool.on("connect", (client) => client.on("error", ignore));
  return pool;
}

/** Opens one connection without timeouts for work on the whole database. Destroying the result closes the connection. */
export function openPostgres<Tables>(database: PostgresDatabase): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: openPool(database, { max: 1 }) }) });
}

/** Returns the parser of a type. Integers of 8 bytes become numbers, because all values of the schema fit. */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format);
}
