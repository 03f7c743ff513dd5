import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { schema } = db;
  const { text, keptInKeyOrder } = dialect;
  await schema
    .createTable("namespaces")
    .addColumn("path", text, (column) => column.primaryKey())
    .addColumn("parent", text, (column) => column.references("namespaces.path"))
    .addColumn("name", text, (column) => column.notNull())
    .addColumn("properties", text, (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await schema.createIndex("namespaces_children").on("namespaces").columns(["parent", "name"]).unique().execute();
  await sql`insert into namespaces (path, name, properties, created_at) values ('', '', '{}', 0)`.execute(db);

  await schema
    .createTable("tables")
    .addColumn("id", dialect.countedKey)
    .addColumn("namespace", text, (column) => column.notNull().references("namespaces.path"))
    .addColumn("name", text, (column) => column.notNull())
    .addColumn("location", text, (column) => column.notNull().unique())
    .addColumn("properties", text, (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addUniqueConstraint("tables_name", ["namespace", "name"])
    .execute();

  await schema
    .createTable("branches")
    .addColumn("table_id", "integer", (column) => column.notNull().references("tables.id").onDelete("cascade"))
    .addColumn("name", text, (column) => column.notNull())
    .addColumn("highest_version", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("branches_key", ["table_id", "name"])
    .modifyEnd(keptInKeyOrder)
    .execute();

  await schema
    .createTable("table_versions")
    .addColumn("table_id", "integer", (column) => column.notNull())
    .addColumn("branch", text, (column) => column.notNull())
    .addColumn("version", "bigint", (column) => column.notNull())
    .addColumn("manifest_name", text, (column) => column.notNull())
    .addColumn("committed_name", text, (column) => column.notNull())
    .addColumn("finished", "integer", (column) => column.notNull())
    .addColumn("manifest_size", "bigint")
    .addColumn("e_tag", text)
    .addColumn("metadata", text)
    .addColumn("timestamp_millis", "bigint", (column) => column.notNull())
    .addColumn("transaction_id", text, (column) => column.notNull())
    .addPrimaryKeyConstraint("table_versions_key", ["table_id", "branch", "version"])
    .addForeignKeyConstraint(
      "table_versions_branch",
      ["table_id", "branch"],
      "branches",
      ["table_id", "name"],
      (constraint) => constraint.onDelete("cascade"),
    )
    .modifyEnd(keptInKeyOrder)
    .execute();
  await sql`create index table_versions_unfinished on table_versions (table_id, branch, version) where finished = 0`.execute(
    db,
  );

  await schema
    .createTable("transactions")
    .addColumn("id", text, (column) => column.primaryKey())
    .addColumn("namespace", text, (column) => column.notNull())
    .addColumn("operation", text, (column) => column.notNull())
    .addColumn("objects", text, (column) => column.notNull())
    .addColumn("principal", text, (column) => column.notNull())
    .addColumn("request_id", text, (column) => column.notNull())
    .addColumn("status", text, (column) => column.notNull())
    .addColumn("properties", text, (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .modifyEnd(keptInKeyOrder)
    .execute();

  await schema
    .createTable("api_keys")
    .addColumn("id", text, (column) => column.primaryKey())
    .addColumn("principal", text, (column) => column.notNull())
    .addColumn("hash", text, (column) => column.notNull().unique())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await schema
    .createTable("grants")
    .addColumn("principal", text, (column) => column.notNull())
    .addColumn("namespace", text, (column) => column.notNull())
    .addColumn("role", text, (column) => column.notNull())
    .addPrimaryKeyConstraint("grants_key", ["principal", "namespace"])
    .modifyEnd(keptInKeyOrder)
    .execute();
  await schema
    .createTable("pending_deletions")
    .addColumn("location", text, (column) => column.primaryKey())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
}
