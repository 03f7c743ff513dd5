import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { PostgresDatabase } from "./database.ts";

/** How long a request waits for a connection. */
const connectTimeoutMs = 5_000;

/** Creates a pool of connections, which opens them on demand. */
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

/** Opens one connection without timeouts for work on the whole database. Destroying it closes the connection. */
export function openPostgres<Tables>(database: PostgresDatabase): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: openPool(database, { max: 1 }) }) });
}

/** Parses integers of 8 bytes as numbers: all values of the schema fit. */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format);
}
