import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/** Keys that are for an attempt of a job. */
export async function up(db: Kysely<unknown>, { text }: Dialect): Promise<void> {
  await db.schema.alterTable("api_keys").addColumn("job", text).execute();
  await db.schema.alterTable("api_keys").addColumn("attempt", "integer").execute();
}
