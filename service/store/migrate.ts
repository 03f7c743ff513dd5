import type Database from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import * as initial from "./migrations/0001-initial.ts";

/** Every change of the schema, in order. A migration that was released is never edited. */
const migrations: Record<string, Migration> = { "0001-initial": initial };

/** Brings the schema of a database up to date. */
export async function migrateSqlite(database: Database.Database): Promise<void> {
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database }) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  // Destroying this Kysely would close the connection, which belongs to the caller.
  if (error !== undefined) throw error;
}
