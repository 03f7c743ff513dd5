import { type SqlBool, sql } from "kysely";
import { parseLocation } from "../storage/location.ts";
import { lowerBranch } from "./branches.ts";
import { noLocation } from "./dropped-tables.ts";
import { defineQuery } from "./queries.ts";
import type { Session } from "./store.ts";
import { isHidden, type LocatedVersion, type VersionRecord } from "./versions.ts";

/** Selects the versions that are not finished. One index covers them, but only if the value is a literal. */
const isUnfinished = sql<SqlBool>`state <> 'finished'`;

type Key = Pick<VersionRecord, "tableId" | "branch" | "generation" | "version" | "committedName">;

function keyOf({ tableId, branch, generation, version, committedName }: VersionRecord): Key {
  return { tableId, branch, generation, version, committedName };
}

export async function identifyVersion({ db }: Session, record: VersionRecord): Promise<void> {
  await db
    .updateTable("tableVersions")
    .set({ identity: record.identity })
    .where((eb) => eb.and(keyOf(record)))
    .execute();
}

const finish = defineQuery((db, { tableId, branch, generation, version, committedName }: Key) =>
  db
    .updateTable("tableVersions")
    .set({ state: "finished" })
    .where((eb) => eb.and({ tableId, branch, generation, version, committedName }))
    .returning("version"),
);

/** Records that a manifest has its final name, which no manifest of an earlier generation has any more. */
export async function finishVersion(session: Session, record: VersionRecord): Promise<void> {
  const finished = await finish(session, keyOf(record));
  if (finished.length === 0 || record.generation <= 1) return;
  await session.db
    .deleteFrom("tableVersions")
    .where((eb) => eb.and({ tableId: record.tableId, branch: record.branch, version: record.version }))
    .where("generation", "<", record.generation)
    .execute();
}

/**
 * Withdraws a commit that cannot be finished, so that its version can be committed again.
 *
 * @returns False if the commit is finished or no longer exists, if another request has placed its manifest, which then
 * has a new identity, or if later versions, which may build on it, were recorded.
 */
export async function withdrawVersion(session: Session, record: VersionRecord): Promise<boolean> {
  const { db } = session;
  const { tableId, branch: name, generation, version } = record;
  const branch = await db
    .selectFrom("branches")
    .select("highestVersion")
    .where((eb) => eb.and({ tableId, name, generation }))
    .executeTakeFirst();
  const isHighest = branch === undefined || branch.highestVersion === version;
  // No version builds on a hidden one.
  if (!isHighest && !isHidden(record)) return false;
  const { numDeletedRows } = await db
    .deleteFrom("tableVersions")
    .where((eb) => eb.and({ ...keyOf(record), identity: record.identity, transactionId: record.transactionId }))
    .where(isUnfinished)
    .executeTakeFirst();
  if (numDeletedRows === 0n) return false;
  if (branch !== undefined && isHighest) await lowerBranch(session, tableId, name, version);
  return true;
}

/** Publishes held versions unless their branch was emptied. @returns Their number. */
export async function publishVersions({ db }: Session, transactionId: string): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("tableVersions")
    .set({ state: "recorded" })
    .where(isUnfinished)
    .where((eb) => eb.and({ transactionId, state: "held" }))
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom("branches")
          .select("generation")
          .whereRef("branches.tableId", "=", "tableVersions.tableId")
          .whereRef("branches.name", "=", "tableVersions.branch")
          .whereRef("branches.generation", "=", "tableVersions.generation"),
      ),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Decides that the held versions of a transaction will never be published. */
export async function condemnVersions({ db }: Session, transactionId: string): Promise<void> {
  await db
    .updateTable("tableVersions")
    .set({ state: "condemned" })
    .where(isUnfinished)
    .where((eb) => eb.and({ transactionId, state: "held" }))
    .execute();
}

/** Lists the unfinished versions of a transaction, without those of deregistered tables, which a task deletes. */
export async function listUnfinishedVersions({ db }: Session, transactionId: string): Promise<LocatedVersion[]> {
  const rows = await db
    .selectFrom("tableVersions")
    .innerJoin("tables", "tables.id", "tableVersions.tableId")
    .selectAll("tableVersions")
    .select("tables.location")
    .where(isUnfinished)
    .where("transactionId", "=", transactionId)
    .where("tables.location", "not like", `${noLocation}%`)
    .orderBy("tableVersions.version", "desc")
    .execute();
  return rows.map(({ location, ...record }) => ({ location: parseLocation(location), record }));
}

/** Lists transactions with versions that are not finished, were recorded up to a time and that have no task. */
export async function listForgottenTransactions({ db }: Session, before: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom("tableVersions")
    .select("transactionId")
    .distinct()
    .where(isUnfinished)
    .where("state", "=", "recorded")
    .where("timestampMillis", "<=", before)
    .where("transactionId", "not in", (eb) => eb.selectFrom("tasks").select("subject").where("kind", "=", "finish"))
    .limit(limit)
    .execute();
  return rows.map((row) => row.transactionId);
}
