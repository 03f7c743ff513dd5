import { lowerBranch } from "./branches.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { type LocatedVersion, type Row, toRecord, type VersionRecord } from "./versions.ts";

const keyColumns = ["table_id", "branch", "generation", "version", "committed_name"] as const;
type Key = Pick<Row, (typeof keyColumns)[number]>;

function keyOf(record: VersionRecord): Key {
  const { tableId: table_id, branch, generation, version, committedName: committed_name } = record;
  return { table_id, branch, generation, version, committed_name };
}

const identify = statement((db, p: Key & { identity: string | null }) =>
  db
    .updateTable("table_versions")
    .set(pick(p, "identity"))
    .where(({ and }) => and(pick(p, ...keyColumns))),
);

/** Records the identity of the content of a placed manifest. */
export async function identifyVersion(session: Session, record: VersionRecord): Promise<void> {
  await session.run(identify, { ...keyOf(record), identity: record.identity ?? null });
}

const finish = statement((db, p: Key) =>
  db
    .updateTable("table_versions")
    .set({ finished: 1 })
    .where(({ and }) => and(pick(p, ...keyColumns))),
);

const removeLeftOver = statement((db, p: Key) =>
  db
    .deleteFrom("table_versions")
    .where(({ and }) => and(pick(p, "table_id", "branch", "version")))
    .where("generation", "<", p.generation),
);

/**
 * Records that the manifest of a commit has its final name. The manifest of an earlier generation with this name no
 * longer exists.
 */
export async function finishVersion(session: Session, record: VersionRecord): Promise<void> {
  const key = keyOf(record);
  const finished = await session.run(finish, key);
  if (finished > 0 && record.generation > 1) await session.run(removeLeftOver, key);
}

const removeUnfinished = statement((db, p: Key) =>
  db
    .deleteFrom("table_versions")
    .where(({ and }) => and(pick(p, ...keyColumns)))
    .where("finished", "=", 0),
);

const findBranch = statement((db, p: Key) =>
  db
    .selectFrom("branches")
    .select("highest_version")
    .where(({ and }) => and({ table_id: p.table_id, name: p.branch, generation: p.generation })),
);

/**
 * Withdraws a commit that cannot be finished, so that its version can be committed again.
 *
 * @returns False if the commit is finished or no longer exists, or if later versions, which may build on it, were
 * recorded.
 */
export async function withdrawVersion(session: Session, record: VersionRecord): Promise<boolean> {
  const key = keyOf(record);
  const branch = await session.first(findBranch, key);
  const isHighest = branch === undefined || branch.highest_version === record.version;
  // No version builds on a hidden one.
  if (!isHighest && !record.held) return false;
  if ((await session.run(removeUnfinished, key)) === 0) return false;
  if (branch !== undefined && isHighest) await lowerBranch(session, record.tableId, record.branch, record.version);
  return true;
}

const publish = statement((db, p: { transaction_id: string }) =>
  db
    .updateTable("table_versions")
    .set({ held: 0 })
    .where(({ and }) => and({ transaction_id: p.transaction_id, finished: 0, held: 1 }))
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom("branches")
          .select("generation")
          .whereRef("branches.table_id", "=", "table_versions.table_id")
          .whereRef("branches.name", "=", "table_versions.branch")
          .whereRef("branches.generation", "=", "table_versions.generation"),
      ),
    ),
);

/**
 * Publishes the held versions of a transaction unless their branch was emptied. @returns The number of published
 * versions.
 */
export function publishVersions(session: Session, transactionId: string): Promise<number> {
  return session.run(publish, { transaction_id: transactionId });
}

const condemn = statement((db, p: { transaction_id: string }) =>
  db
    .updateTable("table_versions")
    .set({ held: 2 })
    .where(({ and }) => and({ transaction_id: p.transaction_id, finished: 0, held: 1 })),
);

/** Decides that the held versions of a transaction will never be published. */
export async function condemnVersions(session: Session, transactionId: string): Promise<void> {
  await session.run(condemn, { transaction_id: transactionId });
}

const listOfTransaction = statement((db, p: { transaction_id: string }) =>
  db
    .selectFrom("table_versions")
    .innerJoin("tables", "tables.id", "table_versions.table_id")
    .selectAll("table_versions")
    .select("tables.location")
    .where(({ and }) => and({ finished: 0, transaction_id: p.transaction_id }))
    .orderBy("table_versions.version", "desc"),
);

/** Lists the unfinished records of a transaction, the highest versions first. */
export async function listUnfinishedVersions(session: Session, transactionId: string): Promise<LocatedVersion[]> {
  const rows = await session.all(listOfTransaction, { transaction_id: transactionId });
  return rows.map((row) => ({ location: row.location, record: toRecord(row) }));
}

const listForgotten = statement((db, p: { before: number; limit: number }) =>
  db
    .selectFrom("table_versions")
    .select("transaction_id")
    .distinct()
    .where(({ and }) => and({ finished: 0, held: 0 }))
    .where("timestamp_millis", "<=", p.before)
    .where("transaction_id", "not in", (eb) => eb.selectFrom("tasks").select("subject").where("kind", "=", "finish"))
    .limit(p.limit),
);

/** Lists transactions with unfinished versions that were recorded up to a time and that have no task. */
export function listForgottenTransactions(session: Session, before: number, limit: number): Promise<string[]> {
  return session.values(listForgotten, { before, limit });
}
