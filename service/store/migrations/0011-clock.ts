import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/** The time at which a process last looked at its clock. */
export async function up(db: Kysely<unknown>, { keptInKeyOrder }: Dialect): Promise<void> {
  await db.schema
    .createTable("clock")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("seen_at", "bigint", (column) => column.notNull())
    .modifyEnd(keptInKeyOrder)
    .execute();
}
