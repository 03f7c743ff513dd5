import { type Kysely, sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import type { Dialect } from "./dialect.ts";
import * as initial from "./migrations/0001-initial.ts";
import * as rateLimits from "./migrations/0002-rate-limits.ts";
import * as droppedTables from "./migrations/0003-dropped-tables.ts";
import * as transactionLists from "./migrations/0004-transaction-lists.ts";
import * as auditAndJobs from "./migrations/0005-audit-and-jobs.ts";
import * as generationsAndTasks from "./migrations/0006-generations-and-tasks.ts";
import * as automations from "./migrations/0007-automations.ts";
import * as jobKeys from "./migrations/0008-job-keys.ts";
import * as principals from "./migrations/0009-principals.ts";
import * as reservedLocations from "./migrations/0010-reserved-locations.ts";
import * as clock from "./migrations/0011-clock.ts";
import * as typedJobs from "./migrations/0012-typed-jobs.ts";
import * as attemptSamples from "./migrations/0013-attempt-samples.ts";
import * as tableColumns from "./migrations/0014-table-columns.ts";

/** A schema migration. */
interface Change {
  up(db: Kysely<unknown>, dialect: Dialect): Promise<void>;
}

/**
 * All migrations in order. A released migration is never edited. None may break the previous release, which still
 * serves while the next one starts: new columns have defaults, and unused columns are removed one release later.
 */
const changes: Record<string, Change> = {
  "0001-initial": initial,
  "0002-rate-limits": rateLimits,
  "0003-dropped-tables": droppedTables,
  "0004-transaction-lists": transactionLists,
  "0005-audit-and-jobs": auditAndJobs,
  "0006-generations-and-tasks": generationsAndTasks,
  "0007-automations": automations,
  "0008-job-keys": jobKeys,
  "0009-principals": principals,
  "0010-reserved-locations": reservedLocations,
  "0011-clock": clock,
  "0012-typed-jobs": typedJobs,
  "0013-attempt-samples": attemptSamples,
  "0014-table-columns": tableColumns,
};

const migrationTable = "kysely_migration";
/** The longest time that a migration waits for the lock of a table. All requests on the table queue behind it. */
const lockTimeoutMs = 5_000;

/** Reports whether a database has the schema of this release or of a later one. */
export async function isMigrated(db: Kysely<unknown>): Promise<boolean> {
  const done = await executedMigrations(db);
  return Object.keys(changes).every((name) => done.has(name));
}

/** Reports whether a catalog has created its tables in a database. */
export async function hasSchema(db: Kysely<unknown>): Promise<boolean> {
  return (await executedMigrations(db)).size > 0;
}

/**
 * Migrates the schema of a database. Concurrent processes wait for the one that migrates. The schema of a later release
 * stays unchanged.
 */
export async function migrate(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (await isMigrated(db)) return;
  const migrations: Record<string, Migration> = {};
  for (const [name, change] of Object.entries(changes))
    migrations[name] = {
      up: async (transaction) => {
        if (dialect.isShared) await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(transaction);
        await change.up(transaction, dialect);
      },
    };
  const migrator = new Migrator({
    db,
    migrationTableName: migrationTable,
    provider: { getMigrations: async () => migrations },
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
