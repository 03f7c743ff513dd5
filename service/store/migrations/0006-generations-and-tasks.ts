import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";
import { droppedNamespace } from "../path.ts";

/**
 * Replaces clocks by stored facts. A branch keeps its row when it is emptied and has a generation that separates its
 * earlier records from the current ones. Deferred work and leases become rows.
 */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { schema } = db;
  const { text, keptInKeyOrder } = dialect;
  await schema
    .alterTable("branches")
    .addColumn("generation", "integer", (column) => column.notNull().defaultTo(1))
    .execute();
  // The first record of an existing branch is unknown; -2 is never a version.
  await schema
    .alterTable("branches")
    .addColumn("first_version", "bigint", (column) => column.notNull().defaultTo(-2))
    .execute();
  await schema
    .alterTable("branches")
    .addColumn("left_over_version", "bigint", (column) => column.notNull().defaultTo(-1))
    .execute();

  await schema
    .alterTable("branches")
    .addColumn("withdrawals", "integer", (column) => column.notNull().defaultTo(0))
    .execute();

  // SQLite cannot change a primary key, so the table is created again.
  await schema.alterTable("table_versions").renameTo("table_versions_before").execute();
  await schema.dropIndex("table_versions_unfinished").execute();
  if (dialect.name === "postgres")
    await sql`alter table table_versions_before drop constraint table_versions_key, drop constraint table_versions_branch`.execute(
      db,
    );
  await schema
    .createTable("table_versions")
    .addColumn("table_id", "integer", (column) => column.notNull())
    .addColumn("branch", text, (column) => column.notNull())
    .addColumn("generation", "integer", (column) => column.notNull().defaultTo(1))
    .addColumn("version", "bigint", (column) => column.notNull())
    .addColumn("manifest_name", text, (column) => column.notNull())
    .addColumn("committed_name", text, (column) => column.notNull())
    .addColumn("identity", text)
    .addColumn("finished", "integer", (column) => column.notNull())
    .addColumn("held", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("manifest_size", "bigint")
    .addColumn("e_tag", text)
    .addColumn("metadata", text)
    .addColumn("timestamp_millis", "bigint", (column) => column.notNull())
    .addColumn("transaction_id", text, (column) => column.notNull())
    .addPrimaryKeyConstraint("table_versions_key", ["table_id", "branch", "generation", "version"])
    .addForeignKeyConstraint(
      "table_versions_branch",
      ["table_id", "branch"],
      "branches",
      ["table_id", "name"],
      (constraint) => constraint.onDelete("cascade"),
    )
    .modifyEnd(keptInKeyOrder)
    .execute();
  await sql`
    insert into table_versions
      (table_id, branch, version, manifest_name, committed_name, finished, manifest_size, e_tag, metadata,
       timestamp_millis, transaction_id)
    select table_id, branch, version, manifest_name, committed_name, finished, manifest_size, e_tag, metadata,
       timestamp_millis, transaction_id
    from table_versions_before`.execute(db);
  await schema.dropTable("table_versions_before").execute();
  await sql`create index table_versions_unfinished on table_versions (transaction_id) where finished = 0`.execute(db);

  await schema
    .createTable("tasks")
    .addColumn("kind", text, (column) => column.notNull())
    .addColumn("subject", text, (column) => column.notNull())
    .addColumn("attempts", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("not_before", "bigint", (column) => column.notNull())
    .addColumn("claim", text)
    .addColumn("claimed_until", "bigint", (column) => column.notNull().defaultTo(0))
    .addColumn("reason", text)
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("tasks_key", ["kind", "subject"])
    .modifyEnd(keptInKeyOrder)
    .execute();
  await schema.createIndex("tasks_due").on("tasks").column("not_before").execute();

  await schema
    .createTable("leases")
    .addColumn("name", text, (column) => column.primaryKey())
    .addColumn("holder", text, (column) => column.notNull())
    .addColumn("held_until", "bigint", (column) => column.notNull())
    .execute();

  // A dropped table keeps its row and thus its location until it is purged.
  const hidden = sql.lit(droppedNamespace);
  await sql`
    insert into tables (namespace, name, location, properties, created_at)
    select ${hidden}, 'purge ' || location, location, '{}', created_at
    from pending_deletions
    where location not in (select location from tables)`.execute(db);
  await sql`
    insert into tasks (kind, subject, not_before, created_at)
    select 'purge', cast(id as text), coalesce(dropped_at, 0), coalesce(dropped_at, created_at)
    from tables where namespace = ${hidden}`.execute(db);
  await sql`delete from pending_deletions`.execute(db);
}
