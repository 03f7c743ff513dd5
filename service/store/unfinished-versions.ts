import { type SqlBool, sql } from "kysely";
import { lowerBranch } from "./branches.ts";
import type { Session } from "./store.ts";
import { type LocatedVersion, toRecord, type VersionRecord } from "./versions.ts";

/** Selects the unfinished versions. One index covers them, but only if the value is a literal (migration 0006). */
const isUnfinished = sql<SqlBool>`finished = 0`;

function keyOf(record: VersionRecord) {
  const { tableId: table_id, branch, generation, version, committedName: committed_name } = record;
  return { table_id, branch, generation, version, committed_name };
}

/** Records the identity of the content of a placed manifest. */
export async function identifyVersion({ db }: Session, record: VersionRecord): Promise<void> {
  await db
    .updateTable("table_versions")
    .set({ identity: record.identity ?? null })
    .where((eb) => eb.and(keyOf(record)))
    .execute();
}

/**
 * Records that the manifest of a commit has its final name. The manifest of an earlier generation with this name no
 * longer exists.
 */
export async function finishVersion({ db }: Session, record: VersionRecord): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable("table_versions")
    .set({ finished: 1 })
    .where((eb) => eb.and(keyOf(record)))
    .executeTakeFirst();
  if (numUpdatedRows === 0n || record.generation <= 1) return;
  await db
    .deleteFrom("table_versions")
    .where("table_id", "=", record.tableId)
    .where("branch", "=", record.branch)
    .where("version", "=", record.version)
    .where("generation", "<", record.generation)
    .execute();
}

/**
 * Withdraws a commit that cannot be finished, so that its version can be committed again.
 *
 * @returns False if the commit is finished or no longer exists, or if later versions, which may build on it, were
 * recorded.
 */
export async function withdrawVersion(session: Session, record: VersionRecord): Promise<boolean> {
  const { db } = session;
  const { tableId, branch: name, generation, version } = record;
  const branch = await db
    .selectFrom("branches")
    .select("highest_version")
    .where((eb) => eb.and({ table_id: tableId, name, generation }))
    .executeTakeFirst();
  const isHighest = branch === undefined || branch.highest_version === version;
  // No version builds on a hidden one.
  if (!isHighest && !record.held) return false;
  const { numDeletedRows } = await db
    .deleteFrom("table_versions")
    .where((eb) => eb.and({ ...keyOf(record), finished: 0 }))
    .executeTakeFirst();
  if (numDeletedRows === 0n) return false;
  if (branch !== undefined && isHighest) await lowerBranch(session, tableId, name, version);
  return true;
}

/**
 * Publishes the held versions of a transaction unless their branch was emptied. @returns The number of published
 * versions.
 */
export async function publishVersions({ db }: Session, transactionId: string): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("table_versions")
    .set({ held: 0 })
    .where(isUnfinished)
    .where("transaction_id", "=", transactionId)
    .where("held", "=", 1)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom("branches")
          .select("generation")
          .whereRef("branches.table_id", "=", "table_versions.table_id")
          .whereRef("branches.name", "=", "table_versions.branch")
          .whereRef("branches.generation", "=", "table_versions.generation"),
      ),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Decides that the held versions of a transaction will never be published. */
export async function condemnVersions({ db }: Session, transactionId: string): Promise<void> {
  await db
    .updateTable("table_versions")
    .set({ held: 2 })
    .where(isUnfinished)
    .where("transaction_id", "=", transactionId)
    .where("held", "=", 1)
    .execute();
}

/** Lists the unfinished records of a transaction, the highest versions first. */
export async function listUnfinishedVersions({ db }: Session, transactionId: string): Promise<LocatedVersion[]> {
  const rows = await db
    .selectFrom("table_versions")
    .innerJoin("tables", "tables.id", "table_versions.table_id")
    .selectAll("table_versions")
    .select("tables.location")
    .where(isUnfinished)
    .where("transaction_id", "=", transactionId)
    .orderBy("table_versions.version", "desc")
    .execute();
  return rows.map((row) => ({ location: row.location, record: toRecord(row) }));
}

/** Lists transactions with unfinished versions that were recorded up to a time and that have no task. */
export async function listForgottenTransactions({ db }: Session, before: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom("table_versions")
    .select("transaction_id")
    .distinct()
    .where(isUnfinished)
    .where("held", "=", 0)
    .where("timestamp_millis", "<=", before)
    .where("transaction_id", "not in", (eb) => eb.selectFrom("tasks").select("subject").where("kind", "=", "finish"))
    .limit(limit)
    .execute();
  return rows.map((row) => row.transaction_id);
}
