import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A row of `table_versions`, with its map read. */
export interface VersionRecord {
  readonly tableId: number;
  readonly branch: string;
  readonly version: number;
  readonly manifestName: string;
  readonly committedName: string;
  readonly finished: boolean;
  readonly manifestSize: number | undefined;
  readonly eTag: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly timestampMillis: number;
  readonly transactionId: string;
}

type Row = Schema["table_versions"];

function toRecord(row: Row): VersionRecord {
  return {
    tableId: row.table_id,
    branch: row.branch,
    version: row.version,
    manifestName: row.manifest_name,
    committedName: row.committed_name,
    finished: row.finished === 1,
    manifestSize: row.manifest_size ?? undefined,
    eTag: row.e_tag ?? undefined,
    metadata: row.metadata === null ? undefined : JSON.parse(row.metadata),
    timestampMillis: row.timestamp_millis,
    transactionId: row.transaction_id,
  };
}

const findHighest = statement((db, p: { table_id: number; name: string }) =>
  db.selectFrom("branches").select("highest_version").where("table_id", "=", p.table_id).where("name", "=", p.name),
);

/** The highest version that the branch ever had; undefined for a branch without a record so far. */
export async function findHighestVersion(
  session: Session,
  tableId: number,
  branch: string,
): Promise<number | undefined> {
  return (await session.first(findHighest, { table_id: tableId, name: branch }))?.highest_version;
}

const upsertBranch = statement((db, p: { table_id: number; name: string; highest_version: number }) =>
  db
    .insertInto("branches")
    .values({ table_id: p.table_id, name: p.name, highest_version: p.highest_version })
    .onConflict((conflict) =>
      conflict
        .columns(["table_id", "name"])
        .doUpdateSet((eb) => ({ highest_version: eb.ref("excluded.highest_version") })),
    ),
);

const insert = statement((db, p: Row) =>
  db.insertInto("table_versions").values({
    table_id: p.table_id,
    branch: p.branch,
    version: p.version,
    manifest_name: p.manifest_name,
    committed_name: p.committed_name,
    finished: p.finished,
    manifest_size: p.manifest_size,
    e_tag: p.e_tag,
    metadata: p.metadata,
    timestamp_millis: p.timestamp_millis,
    transaction_id: p.transaction_id,
  }),
);

/** Inserts a record that is the highest of its branch. */
export async function insertVersion(session: Session, record: VersionRecord): Promise<void> {
  await session.run(upsertBranch, {
    table_id: record.tableId,
    name: record.branch,
    highest_version: record.version,
  });
  await session.run(insert, {
    table_id: record.tableId,
    branch: record.branch,
    version: record.version,
    manifest_name: record.manifestName,
    committed_name: record.committedName,
    finished: record.finished ? 1 : 0,
    manifest_size: record.manifestSize ?? null,
    e_tag: record.eTag ?? null,
    metadata: record.metadata === undefined ? null : JSON.stringify(record.metadata),
    timestamp_millis: record.timestampMillis,
    transaction_id: record.transactionId,
  });
}

const find = statement((db, p: { table_id: number; branch: string; version: number }) =>
  db
    .selectFrom("table_versions")
    .selectAll()
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("version", "=", p.version),
);

export async function findVersion(
  session: Session,
  tableId: number,
  branch: string,
  version: number,
): Promise<VersionRecord | undefined> {
  const row = await session.first(find, { table_id: tableId, branch, version });
  return row && toRecord(row);
}

const listFrom = (descending: boolean) =>
  statement((db, p: { table_id: number; branch: string; after: number; limit: number }) =>
    db
      .selectFrom("table_versions")
      .selectAll()
      .where("table_id", "=", p.table_id)
      .where("branch", "=", p.branch)
      .where("version", descending ? "<" : ">", p.after)
      .orderBy("version", descending ? "desc" : "asc")
      .limit(p.limit),
  );
const listAscending = listFrom(false);
const listDescending = listFrom(true);

/** The records of a branch from behind the version `after` on; from its beginning when that is undefined. */
export async function listVersions(
  session: Session,
  tableId: number,
  branch: string,
  page: { readonly after: number | undefined; readonly limit: number; readonly descending: boolean },
): Promise<VersionRecord[]> {
  const rows = await session.all(page.descending ? listDescending : listAscending, {
    table_id: tableId,
    branch,
    after: page.after ?? (page.descending ? Number.MAX_SAFE_INTEGER : -1),
    limit: page.limit,
  });
  return rows.map(toRecord);
}

/** The record with the highest version of a branch. */
export async function latestVersion(
  session: Session,
  tableId: number,
  branch: string,
): Promise<VersionRecord | undefined> {
  const [latest] = await listVersions(session, tableId, branch, { after: undefined, limit: 1, descending: true });
  return latest;
}

/** The record with the highest version of those below a version of the same branch. */
export async function versionBefore(
  session: Session,
  { tableId, branch, version }: VersionRecord,
): Promise<VersionRecord | undefined> {
  const [before] = await listVersions(session, tableId, branch, { after: version, limit: 1, descending: true });
  return before;
}

const hasAny = statement((db, p: { table_id: number }) =>
  db.selectFrom("table_versions").select("version").where("table_id", "=", p.table_id).limit(1),
);

/** Whether the table has a version on any branch. */
export async function hasVersions(session: Session, tableId: number): Promise<boolean> {
  return (await session.first(hasAny, { table_id: tableId })) !== undefined;
}

const findAfterMany = statement(
  (db, p: { table_id: number; branch: string; start: number; end: number; count: number }) =>
    db
      .selectFrom("table_versions")
      .select("version")
      .where("table_id", "=", p.table_id)
      .where("branch", "=", p.branch)
      .where("version", ">=", p.start)
      .where("version", "<", p.end)
      .orderBy("version")
      .offset(p.count)
      .limit(1),
);

/**
 * Where to cut a range, so that its first part has `count` records.
 *
 * @returns The version of the first record behind them; undefined when the range has no more than that.
 */
export async function findCut(
  session: Session,
  tableId: number,
  branch: string,
  range: { readonly start: number; readonly end: number },
  count: number,
): Promise<number | undefined> {
  return (await session.first(findAfterMany, { table_id: tableId, branch, ...range, count }))?.version;
}

const removeRange = statement((db, p: { table_id: number; branch: string; start: number; end: number }) =>
  db
    .deleteFrom("table_versions")
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("version", ">=", p.start)
    .where("version", "<", p.end),
);

/**
 * Deletes the records from `start` on, up to and without `end`.
 *
 * @returns How many records there were.
 */
export async function deleteVersions(
  session: Session,
  tableId: number,
  branch: string,
  range: { readonly start: number; readonly end: number },
): Promise<number> {
  return session.run(removeRange, { table_id: tableId, branch, start: range.start, end: range.end });
}

const listBranches = statement((db, p: { table_id: number }) =>
  db.selectFrom("branches").select("name").where("table_id", "=", p.table_id).orderBy("name"),
);

/** The branches that have or had records, `main` among them. */
export async function listBranchNames(session: Session, tableId: number): Promise<string[]> {
  return session.values(listBranches, { table_id: tableId });
}

const removeBranch = statement((db, p: { table_id: number; name: string }) =>
  db.deleteFrom("branches").where("table_id", "=", p.table_id).where("name", "=", p.name),
);

/** Forgets a branch whose records are deleted, with its numbering. */
export async function deleteBranch(session: Session, tableId: number, branch: string): Promise<void> {
  await session.run(removeBranch, { table_id: tableId, name: branch });
}

const finish = statement((db, p: { table_id: number; branch: string; version: number; committed_name: string }) =>
  db
    .updateTable("table_versions")
    .set({ finished: 1 })
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("version", "=", p.version)
    .where("committed_name", "=", p.committed_name),
);

/** Notes that the manifest of this very commit has its final name. */
export async function finishVersion(session: Session, record: VersionRecord): Promise<void> {
  await session.run(finish, {
    table_id: record.tableId,
    branch: record.branch,
    version: record.version,
    committed_name: record.committedName,
  });
}

const removeUnfinished = statement(
  (db, p: { table_id: number; branch: string; version: number; committed_name: string }) =>
    db
      .deleteFrom("table_versions")
      .where("table_id", "=", p.table_id)
      .where("branch", "=", p.branch)
      .where("version", "=", p.version)
      .where("committed_name", "=", p.committed_name)
      .where("finished", "=", 0),
);

/**
 * Takes back a commit that cannot be finished, so that its version can be committed anew.
 *
 * @returns False when it is not the latest version, which others may already build on.
 */
export async function withdrawVersion(session: Session, record: VersionRecord): Promise<boolean> {
  const { tableId: table_id, branch, version, committedName: committed_name } = record;
  if ((await findHighestVersion(session, table_id, branch)) !== version) return false;
  if ((await session.run(removeUnfinished, { table_id, branch, version, committed_name })) === 0) return false;
  if ((await latestVersion(session, table_id, branch)) === undefined) await deleteBranch(session, table_id, branch);
  else await session.run(upsertBranch, { table_id, name: branch, highest_version: version - 1 });
  return true;
}

const listUnfinished = statement((db, p: { limit: number }) =>
  db
    .selectFrom("table_versions")
    .innerJoin("tables", "tables.id", "table_versions.table_id")
    .selectAll("table_versions")
    .select("tables.location")
    .where("table_versions.finished", "=", 0)
    .orderBy("table_versions.table_id")
    .limit(p.limit),
);

/** Records whose manifests still wait under the names that clients committed. */
export async function listUnfinishedVersions(
  session: Session,
  limit: number,
): Promise<{ readonly location: string; readonly record: VersionRecord }[]> {
  const rows = await session.all(listUnfinished, { limit });
  return rows.map((row) => ({ location: row.location, record: toRecord(row) }));
}
