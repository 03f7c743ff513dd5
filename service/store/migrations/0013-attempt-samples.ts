import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/** Adds the progress of an attempt over time. */
export async function up(db: Kysely<unknown>, { text }: Dialect): Promise<void> {
  await db.schema
    .alterTable("job_attempts")
    .addColumn("samples", text, (column) => column.notNull().defaultTo("[]"))
    .execute();
}
