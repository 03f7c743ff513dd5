import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { PostgresDatabase } from "./database.ts";

/** How long a request waits for a connection. */
const connectTimeoutMs = 5_000;

/** Connections to the database, opened when they are needed. */
export function openPool(database: PostgresDatabase, options: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    connectionString: database.url,
    application_name: "tiltyard-catalog",
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    types: { getTypeParser },
    ...options,
  });
  // The query of a broken connection fails, and is handled there. Without listeners the error of
  // an idle connection would end the process.
  const ignore = () => {};
  pool.on("error", ignore);
  pool.on("connect", (client) => client.on("error", ignore));
  return pool;
}

/** One connection for work on the whole database, which may take its time. Destroying it closes the connection. */
export function openPostgres<Tables>(database: PostgresDatabase): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: openPool(database, { max: 1 }) }) });
}

/** Integers of 8 bytes come as numbers, as the schema has them: none is beyond what a number holds. */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format);
}
