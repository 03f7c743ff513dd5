import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";

/**
 * Adds the names of the columns of each table. Those of existing tables are unknown, so the index contains all their
 * main branches.
 */
export async function up(db: Kysely<unknown>, { text }: Dialect): Promise<void> {
  await db.schema
    .createTable("table_columns")
    .addColumn("table_id", "integer", (column) => column.primaryKey().references("tables.id").onDelete("cascade"))
    .addColumn("names", text, (column) => column.notNull())
    .execute();
  await db.schema
    .alterTable("branches")
    .addColumn("columns_version", "bigint", (column) => column.notNull().defaultTo(-1))
    .execute();
  await sql`create index branches_unread_columns on branches (table_id)
    where name = 'main' and columns_version <> highest_version`.execute(db);
}
