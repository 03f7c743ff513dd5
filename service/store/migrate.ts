import { type Kysely, sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import type { Dialect } from "./dialect.ts";
import * as initial from "./migrations/0001-initial.ts";

/**
 * All migrations in order. A released migration is never edited. None may break the previous release, which still
 * serves while the next one starts: new columns have defaults, and unused columns are removed one release later. A
 * migration declares the columns that it adds, and `schema.ts` joins those of all migrations.
 *
 * Until the first release, a changed schema edits the initial migration and renames it, so that the database
 * of an earlier checkout is refused.
 */
const migrations: Record<string, (db: Kysely<unknown>, dialect: Dialect) => Promise<void>> = {
  "0001-initial-p": initial.up,
};

const migrationTable = "kysely_migration";
/** The longest time that a migration waits for the lock of a table. All requests on the table queue behind it. */
const lockTimeoutMs = 5_000;

/** Reports whether a database has the schema of this release or of a later one. @throws like `migrate` */
export async function isMigrated(db: Kysely<unknown>): Promise<boolean> {
  const executed = await executedMigrations(db);
  const names = Object.keys(migrations);
  if (executed.size > 0 && !names.slice(0, 1).every((name) => executed.has(name)))
    throw new Error(
      "an earlier checkout created it, with another schema. To keep its tables, move the database away, start a new " +
        "catalog with TILTYARD_NEW_CATALOG=1 and register the tables of the warehouse; otherwise delete it",
    );
  return names.every((name) => executed.has(name));
}

/**
 * Migrates the schema of a database. Concurrent processes wait for the one that migrates. The schema of a later release
 * stays unchanged.
 *
 * @throws Error if an earlier checkout created the database.
 */
export async function migrate(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (await isMigrated(db)) return;
  const prepared = Object.entries(migrations).map(([name, up]): [string, Migration] => [
    name,
    {
      up: async (transaction) => {
        if (dialect.isShared) await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(transaction);
        await up(transaction, dialect);
      },
    },
  ]);
  const migrator = new Migrator({
    db,
    migrationTableName: migrationTable,
    provider: { getMigrations: async () => Object.fromEntries(prepared) },
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}

async function executedMigrations(db: Kysely<unknown>): Promise<ReadonlySet<string>> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === migrationTable)) return new Set();
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(migrationTable)}`.execute(db);
  return new Set(rows.map((row) => row.name));
}
