import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";

/**
 * Creates the request counts that the processes of one database share, in the format of rate-limiter-flexible. The
 * table has no write-ahead log, because the counts need not survive a crash.
 */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (!dialect.isShared) return;
  await sql`create unlogged table rate_limits (key text primary key, points integer not null default 0, expire bigint)`.execute(
    db,
  );
}
