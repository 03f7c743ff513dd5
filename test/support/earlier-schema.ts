import { readdirSync } from "node:fs";
import { join } from "node:path";
import SqliteFile from "better-sqlite3";
import { Kysely, SqliteDialect, sql } from "kysely";
import type { Database } from "../../service/store/database.ts";
import { type Dialect, postgres, sqlite } from "../../service/store/dialect.ts";
import { openPostgres } from "../../service/store/postgres-pool.ts";

const folder = join(import.meta.dirname, "../../service/store/migrations");

/** Creates the schema that the migrations up to one of them produce. @param last The name of its file, without `.ts`. */
export async function createEarlierSchema(database: Database, last: string): Promise<void> {
  const names = readdirSync(folder)
    .map((file) => file.replace(".ts", ""))
    .sort();
  const migrations = names.slice(0, names.indexOf(last) + 1);
  const [db, dialect]: [Kysely<unknown>, Dialect] =
    database.kind === "postgres"
      ? [openPostgres(database), postgres]
      : [new Kysely({ dialect: new SqliteDialect({ database: new SqliteFile(database.file) }) }), sqlite];
  await sql`create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)`.execute(db);
  for (const name of migrations) {
    const { up } = await import(`../../service/store/migrations/${name}.ts`);
    await db.transaction().execute(async (transaction) => {
      await up(transaction, dialect);
      await sql`insert into kysely_migration values (${name}, '2026-01-01T00:00:00.000Z')`.execute(transaction);
    });
  }
  await db.destroy();
}
