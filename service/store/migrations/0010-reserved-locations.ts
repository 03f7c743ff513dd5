import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/** Adds the locations of deregistered tables, whose objects remain. */
export async function up(db: Kysely<unknown>, { text, keptInKeyOrder }: Dialect): Promise<void> {
  await db.schema
    .createTable("reserved_locations")
    .addColumn("location", text, (column) => column.primaryKey())
    .addColumn("identifier", text, (column) => column.notNull())
    .modifyEnd(keptInKeyOrder)
    .execute();
}
