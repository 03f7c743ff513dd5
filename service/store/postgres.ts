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
import { type IRateLimiterPostgresOptions, RateLimiterMemory, RateLimiterPostgres } from "rate-limiter-flexible";
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
    throw unusable(database, error);
  } finally {
    await migrating.destroy();
  }
  const pool = openPool(database, {
    max: database.connectionsMax,
    query_timeout: queryTimeoutMs,
    statement_timeout: queryTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
  });
  try {
    return new PostgresStore(pool, await followClock(pool));
  } catch (error) {
    await pool.end();
    throw unusable(database, error);
  }
}

function unusable(database: PostgresDatabase, error: unknown): Error {
  const explained = explain(error);
  return cannotUse(describeDatabase(database), explained instanceof CatalogError ? explained.cause : explained);
}

/** @throws Error if the server is older than the oldest supported version. */
async function requireVersion(db: Kysely<unknown>): Promise<void> {
  const setting = sql<{ version: string }>`select current_setting('server_version_num') as version`;
  const { rows } = await setting.execute(db);
  const major = Math.floor(Number(rows[0]?.version) / 10_000);
  if (major < majorVersionMin)
    throw new Error(`it runs PostgreSQL ${major}, and the catalog requires ${majorVersionMin} or later`);
}

/** The interval between readings of the server's clock. */
const clockReadEveryMs = 10_000;

interface Clock extends Disposable {
  readonly time: Session["time"];
}

/**
 * Follows the clock of the server, which all replicas share, while their own clocks may differ or jump. Between readings
 * it counts on by the monotonic clock of this process.
 */
async function followClock(pool: pg.Pool): Promise<Clock> {
  const db = createQueries(new PostgresRecordsDialect({ pool }));
  let aheadMs = 0;
  const read = async () => {
    const { rows } = await sql<{ readonly now: number }>`select ${postgres.now} as now`.execute(db);
    // After a slow answer the clock is late, so that nothing expires too early.
    aheadMs = (rows[0]?.now ?? 0) - performance.now();
  };
  await read();
  // After a failed reading, the clock counts on.
  const timer = setInterval(() => void read().catch(() => undefined), clockReadEveryMs).unref();
  return { time: () => Math.round(performance.now() + aheadMs), [Symbol.dispose]: () => clearInterval(timer) };
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
  readonly #clock: Clock;
  readonly #writing = new Set<Promise<unknown>>();

  constructor(pool: pg.Pool, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
    this.#writer = createQueries(new PostgresRecordsDialect({ pool }));
    const reading = { createDriver: () => new ReadingDriver(pool) };
    const db = createQueries(Object.assign(new PostgresRecordsDialect({ pool }), reading));
    // PostgreSQL has no cheap way to detect the commits of other transactions.
    this.read = { ...postgres, db, time: clock.time, cached: uncached };
  }

  async write<Result>(work: (session: Session) => Promise<Result>, { locking }: WriteOptions = {}): Promise<Result> {
    const transaction = this.#writer.transaction().setIsolationLevel("repeatable read");
    let isCommitting = false;
    const attempt = () => {
      isCommitting = false;
      return transaction.execute(async (db) => {
        // The lock must precede the first query, which fixes the snapshot of the transaction.
        if (locking !== undefined) await sql`lock table ${sql.table(locking)} in share row exclusive mode`.execute(db);
        const result = await work({ ...this.read, db, locked: locking });
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
    return new SharedLimiter(this.read.db, {
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
    this.#clock[Symbol.dispose]();
    await Promise.allSettled(this.#writing);
    await this.#pool.end();
  }
}

/** Counts periods by the clock of the server. The library would compare the clocks of all replicas. */
class SharedLimiter extends RateLimiterPostgres {
  readonly #db: Session["db"];

  constructor(db: Session["db"], options: IRateLimiterPostgresOptions) {
    super(options);
    this.#db = db;
  }

  /** Counts a request, as the library expects it. An expiry beyond a period is one from before the clock was set back. */
  async _upsert(key: string, points: number, periodMs: number) {
    const { now } = postgres;
    const isCurrent = sql`counter.expire between ${now} and ${now} + ${periodMs}::bigint`;
    const counted = await sql<{ readonly points: number; readonly leftMs: number }>`
      insert into rate_limits as counter (key, points, expire) values (${key}, ${points}, ${now} + ${periodMs}::bigint)
      on conflict (key) do update set
        points = case when ${isCurrent} then counter.points + excluded.points else excluded.points end,
        expire = case when ${isCurrent} then counter.expire else excluded.expire end
      returning points, expire - ${now} as "leftMs"`.execute(this.#db);
    return { rows: counted.rows.map((row) => ({ points: row.points, expire: Date.now() + row.leftMs })) };
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
