import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";

/**
 * The counts of requests that the processes of one database share, as rate-limiter-flexible
 * wants them. They are worth nothing after a crash, so they need no write-ahead log.
 */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (!dialect.isShared) return;
  await sql`create unlogged table rate_limits (key text primary key, points integer not null default 0, expire bigint)`.execute(
    db,
  );
}
