import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";
import { droppedNamespace } from "../path.ts";

/** Adds dropped tables that can be undropped, in a hidden namespace that no identifier can name. */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema.alterTable("tables").addColumn("dropped_from", dialect.text).execute();
  await db.schema.alterTable("tables").addColumn("dropped_at", "bigint").execute();
  await sql`create index tables_dropped on tables (dropped_at) where dropped_at is not null`.execute(db);
  await sql`insert into namespaces (path, name, properties, created_at) values (${sql.lit(droppedNamespace)}, '', '{}', 0)`.execute(
    db,
  );
}
