import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/** Adds the time of the latest reading of the clock by any process. */
export async function up(db: Kysely<unknown>, { keptInKeyOrder }: Dialect): Promise<void> {
  await db.schema
    .createTable("clock")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("seen_at", "bigint", (column) => column.notNull())
    .modifyEnd(keptInKeyOrder)
    .execute();
}
