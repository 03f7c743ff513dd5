import type { Kysely } from "kysely";
import type { Dialect } from "../dialect.ts";

/**
 * Adds the jobs that the catalog opens itself when a commit adds rows, and a mark on the tables that have such
 * automations.
 */
export async function up({ schema }: Kysely<unknown>, { text, keptInKeyOrder }: Dialect): Promise<void> {
  await schema
    .alterTable("tables")
    .addColumn("is_automated", "integer", (column) => column.notNull().defaultTo(0))
    .execute();
  await schema
    .createTable("automations")
    .addColumn("table_id", "integer", (column) => column.notNull())
    .addColumn("kind", text, (column) => column.notNull())
    .addColumn("target", text, (column) => column.notNull())
    .addColumn("principal", text, (column) => column.notNull())
    .addColumn("seen_version", "bigint", (column) => column.notNull())
    .addColumn("seen_fragment", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("automations_key", ["table_id", "kind", "target"])
    .addForeignKeyConstraint("automations_table", ["table_id"], "tables", ["id"], (constraint) =>
      constraint.onDelete("cascade"),
    )
    .modifyEnd(keptInKeyOrder)
    .execute();
}
