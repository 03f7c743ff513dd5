import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { PostgresDatabase } from "./database.ts";

/** The time that a request waits for a connection. */
const connectTimeoutMs = 5_000;

/** Creates a pool that opens its connections on demand. */
export function openPool(database: PostgresDatabase, options: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    connectionString: database.url,
    application_name: "tiltyard-catalog",
    connectionTimeoutMillis: connectTimeoutMs,
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
