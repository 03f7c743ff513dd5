import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/** Adds keys that belong to an attempt of a job. */
export async function up(db: Kysely<unknown>, { text }: Dialect): Promise<void> {
  await db.schema.alterTable("api_keys").addColumn("job", text).execute();
  await db.schema.alterTable("api_keys").addColumn("attempt", "integer").execute();
}
