import type { Kysely } from "kysely";
import { lowerBranch, raiseBranch } from "./branches.ts";
import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A row of `table_versions`, with its map read. */
export interface VersionRecord {
  readonly tableId: number;
  readonly branch: string;
  readonly generation: number;
  readonly version: number;
  readonly manifestName: string;
  readonly committedName: string;
  /** What the store calls the content of the manifest; undefined in records of older releases. */
  readonly identity: string | undefined;
  readonly finished: boolean;
  /** Whether it belongs to a commit of several versions before its commit point: then it is hidden. */
  readonly held: boolean;
  /** Whether that commit never reaches it. */
  readonly condemned: boolean;
  readonly manifestSize: number | undefined;
  readonly eTag: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly timestampMillis: number;
  readonly transactionId: string;
}

/** Behind the highest version that there can be. */
export const versionsEnd = Number.MAX_SAFE_INTEGER + 1;

type Row = Schema["table_versions"];
const condemned = 2;

function toRecord(row: Row): VersionRecord {
  return {
    tableId: row.table_id,
    branch: row.branch,
    generation: row.generation,
    version: row.version,
    manifestName: row.manifest_name,
    committedName: row.committed_name,
    identity: row.identity ?? undefined,
    finished: row.finished === 1,
    held: row.held !== 0,
    condemned: row.held === condemned,
    manifestSize: row.manifest_size ?? undefined,
    eTag: row.e_tag ?? undefined,
    metadata: row.metadata === null ? undefined : JSON.parse(row.metadata),
    timestampMillis: row.timestamp_millis,
    transactionId: row.transaction_id,
  };
}

function toRow(record: VersionRecord): Row {
  return {
    table_id: record.tableId,
    branch: record.branch,
    generation: record.generation,
    version: record.version,
    manifest_name: record.manifestName,
    committed_name: record.committedName,
    identity: record.identity ?? null,
    finished: record.finished ? 1 : 0,
    held: record.condemned ? condemned : record.held ? 1 : 0,
    manifest_size: record.manifestSize ?? null,
    e_tag: record.eTag ?? null,
    metadata: record.metadata === undefined ? null : JSON.stringify(record.metadata),
    timestamp_millis: record.timestampMillis,
    transaction_id: record.transactionId,
  };
}

const columns = [
  "table_id",
  "branch",
  "generation",
  "version",
  "manifest_name",
  "committed_name",
  "identity",
  "finished",
  "held",
  "manifest_size",
  "e_tag",
  "metadata",
  "timestamp_millis",
  "transaction_id",
] as const satisfies readonly (keyof Row)[];

const insert = statement((db, p: Row) =>
  db.insertInto("table_versions").values(Object.fromEntries(columns.map((name) => [name, p[name]])) as unknown as Row),
);

/** Inserts a record that is the highest of its branch. */
export async function insertVersion(session: Session, record: VersionRecord): Promise<void> {
  const { tableId, branch: name, generation, version } = record;
  await raiseBranch(session, { tableId, name, generation, lowest: version, highest: version });
  await session.run(insert, toRow(record));
}

const rowsAtOnce = 50;

/** Each value has the name of its column and the number of its row. */
type Rows = { readonly [Name in `${keyof Row}${number}`]: Row[keyof Row] };

const insertSome = statement((db, p: Rows) =>
  db.insertInto("table_versions").values(
    Array.from({ length: rowsAtOnce }, (_, index) => {
      const of = (name: keyof Row) => [name, p[`${name}${index}`]];
      return Object.fromEntries(columns.map(of)) as unknown as Row;
    }),
  ),
);

/** Inserts records up to the highest version that `raiseBranch` noted, many with one statement. */
export async function insertVersions(session: Session, records: readonly VersionRecord[]): Promise<void> {
  const rows = records.map(toRow);
  while (rows.length >= rowsAtOnce) {
    const some = rows.splice(0, rowsAtOnce);
    const values = some.flatMap((row, index) => columns.map((name) => [`${name}${index}`, row[name]]));
    await session.run(insertSome, Object.fromEntries(values) as Rows);
  }
  for (const row of rows) await session.run(insert, row);
}

/** The records of the present generation of each branch, those that are held among them. */
function presentVersions(db: Kysely<Schema>) {
  return db
    .selectFrom("branches")
    .innerJoin("table_versions", (join) =>
      join
        .onRef("table_versions.table_id", "=", "branches.table_id")
        .onRef("table_versions.branch", "=", "branches.name")
        .onRef("table_versions.generation", "=", "branches.generation"),
    );
}

function ofBranch(db: Kysely<Schema>, p: { readonly table_id: number; readonly branch: string }) {
  return presentVersions(db).where("branches.table_id", "=", p.table_id).where("branches.name", "=", p.branch);
}

const find = statement((db, p: { table_id: number; branch: string; version: number }) =>
  ofBranch(db, p).selectAll("table_versions").where("table_versions.version", "=", p.version),
);

/** @returns The record of a version, also one that is held. */
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
    ofBranch(db, p)
      .selectAll("table_versions")
      .where("table_versions.version", descending ? "<" : ">", p.after)
      .where("table_versions.held", "=", 0)
      .orderBy("table_versions.version", descending ? "desc" : "asc")
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
    after: page.after ?? (page.descending ? versionsEnd : -1),
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

const listLeftOver = statement(
  (db, p: { table_id: number; branch: string; generation: number; start: number; end: number }) =>
    db
      .selectFrom("table_versions")
      .selectAll()
      .where("table_id", "=", p.table_id)
      .where("branch", "=", p.branch)
      .where("generation", "<", p.generation)
      .where("version", ">=", p.start)
      .where("version", "<=", p.end),
);

/** The records of versions `start` to `end` that a branch had in generations before this one. */
export async function listLeftOverVersions(
  session: Session,
  of: { readonly tableId: number; readonly branch: string; readonly generation: number },
  start: number,
  end: number,
): Promise<VersionRecord[]> {
  const { tableId: table_id, branch, generation } = of;
  return (await session.all(listLeftOver, { table_id, branch, generation, start, end })).map(toRecord);
}

const hasAny = statement((db, p: { table_id: number }) =>
  presentVersions(db)
    .select("table_versions.version")
    .where("branches.table_id", "=", p.table_id)
    .where("table_versions.held", "=", 0)
    .limit(1),
);

/** Whether the table has a version on any branch. */
export async function hasVersions(session: Session, tableId: number): Promise<boolean> {
  return (await session.first(hasAny, { table_id: tableId })) !== undefined;
}

const count = statement((db, p: { table_id: number; branch: string }) =>
  ofBranch(db, p)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("table_versions.held", "=", 0),
);

/** How many records a branch has. */
export async function countVersions(session: Session, tableId: number, branch: string): Promise<number> {
  return Number((await session.first(count, { table_id: tableId, branch }))?.count ?? 0);
}

const findAfterMany = statement(
  (db, p: { table_id: number; branch: string; start: number; end: number; count: number }) =>
    ofBranch(db, p)
      .select("table_versions.version")
      .where("table_versions.version", ">=", p.start)
      .where("table_versions.version", "<", p.end)
      .orderBy("table_versions.version")
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
    .where("generation", "=", (eb) =>
      eb.selectFrom("branches").select("generation").where("table_id", "=", p.table_id).where("name", "=", p.branch),
    )
    .where("version", ">=", p.start)
    .where("version", "<", p.end)
    .where("held", "=", 0),
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

const listSome = statement((db, p: { table_id: number; limit: number }) =>
  db
    .selectFrom("table_versions")
    .select(["branch", "generation", "version"])
    .where("table_id", "=", p.table_id)
    .limit(p.limit),
);

const remove = statement((db, p: { table_id: number; branch: string; generation: number; from: number; to: number }) =>
  db
    .deleteFrom("table_versions")
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("generation", "=", p.generation)
    .where("version", ">=", p.from)
    .where("version", "<=", p.to),
);

/**
 * Deletes some records of a table that is gone, of all its branches and generations.
 *
 * @returns Whether there are more.
 */
export async function deleteSomeVersions(session: Session, tableId: number, limit: number): Promise<boolean> {
  const rows = await session.all(listSome, { table_id: tableId, limit });
  const byGeneration = Map.groupBy(rows, ({ branch, generation }) => `${generation} ${branch}`);
  for (const group of byGeneration.values()) {
    const [{ branch, generation } = { branch: "", generation: 0 }] = group;
    const versions = group.map(({ version }) => version);
    const [from, to] = [Math.min(...versions), Math.max(...versions)];
    await session.run(remove, { table_id: tableId, branch, generation, from, to });
  }
  return rows.length === limit;
}

type Key = Pick<Row, "table_id" | "branch" | "generation" | "version" | "committed_name">;

function keyOf(record: VersionRecord): Key {
  const { tableId: table_id, branch, generation, version, committedName: committed_name } = record;
  return { table_id, branch, generation, version, committed_name };
}

const identify = statement((db, p: Key & { identity: string | null }) =>
  db
    .updateTable("table_versions")
    .set({ identity: p.identity })
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("generation", "=", p.generation)
    .where("version", "=", p.version)
    .where("committed_name", "=", p.committed_name),
);

/** Notes what the store calls the content of a manifest that has its final name. */
export async function identifyVersion(session: Session, record: VersionRecord): Promise<void> {
  await session.run(identify, { ...keyOf(record), identity: record.identity ?? null });
}

const finish = statement((db, p: Key) =>
  db
    .updateTable("table_versions")
    .set({ finished: 1 })
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("generation", "=", p.generation)
    .where("version", "=", p.version)
    .where("committed_name", "=", p.committed_name),
);

const removeLeftOver = statement((db, p: Key) =>
  db
    .deleteFrom("table_versions")
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("generation", "<", p.generation)
    .where("version", "=", p.version),
);

/** Notes that the manifest of this very commit has its final name, which no earlier generation has any more. */
export async function finishVersion(session: Session, record: VersionRecord): Promise<void> {
  const key = keyOf(record);
  const finished = await session.run(finish, key);
  if (finished > 0 && record.generation > 1) await session.run(removeLeftOver, key);
}

const removeUnfinished = statement((db, p: Key) =>
  db
    .deleteFrom("table_versions")
    .where("table_id", "=", p.table_id)
    .where("branch", "=", p.branch)
    .where("generation", "=", p.generation)
    .where("version", "=", p.version)
    .where("committed_name", "=", p.committed_name)
    .where("finished", "=", 0),
);

const isPresent = statement((db, p: Key) =>
  db
    .selectFrom("branches")
    .select("highest_version")
    .where("table_id", "=", p.table_id)
    .where("name", "=", p.branch)
    .where("generation", "=", p.generation),
);

/**
 * Withdraws a commit that cannot be finished, so that its version can be committed again.
 *
 * @returns False when it is finished, when it is gone, or when later versions were recorded, which may build on it.
 */
export async function withdrawVersion(session: Session, record: VersionRecord): Promise<boolean> {
  const key = keyOf(record);
  const branch = await session.first(isPresent, key);
  const isHighest = branch === undefined || branch.highest_version === record.version;
  // Nothing builds on a hidden version.
  if (!isHighest && !record.held) return false;
  if ((await session.run(removeUnfinished, key)) === 0) return false;
  if (branch !== undefined && isHighest) await lowerBranch(session, record.tableId, record.branch, record.version);
  return true;
}

const publish = statement((db, p: { transaction_id: string }) =>
  db
    .updateTable("table_versions")
    .set({ held: 0 })
    .where("transaction_id", "=", p.transaction_id)
    .where("finished", "=", 0)
    .where("held", "=", 1)
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
 * Publishes the held versions of a transaction, unless their branch was emptied meanwhile.
 *
 * @returns How many were published.
 */
export async function publishVersions(session: Session, transactionId: string): Promise<number> {
  return session.run(publish, { transaction_id: transactionId });
}

const condemn = statement((db, p: { transaction_id: string }) =>
  db
    .updateTable("table_versions")
    .set({ held: condemned })
    .where("transaction_id", "=", p.transaction_id)
    .where("finished", "=", 0)
    .where("held", "=", 1),
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
    .where("table_versions.finished", "=", 0)
    .where("table_versions.transaction_id", "=", p.transaction_id)
    .orderBy("table_versions.version", "desc"),
);

/** A record with the location of its table. */
export interface LocatedVersion {
  readonly location: string;
  readonly record: VersionRecord;
}

/** The records of a transaction that are not finished, the highest versions first. */
export async function listUnfinishedVersions(session: Session, transactionId: string): Promise<LocatedVersion[]> {
  const rows = await session.all(listOfTransaction, { transaction_id: transactionId });
  return rows.map((row) => ({ location: row.location, record: toRecord(row) }));
}

const listForgotten = statement((db, p: { before: number; limit: number }) =>
  db
    .selectFrom("table_versions")
    .select("transaction_id")
    .distinct()
    .where("finished", "=", 0)
    .where("held", "=", 0)
    .where("timestamp_millis", "<=", p.before)
    .where("transaction_id", "not in", (eb) => eb.selectFrom("tasks").select("subject").where("kind", "=", "finish"))
    .limit(p.limit),
);

/** The transactions with versions that are not finished, were recorded until a time, and that no task is about. */
export async function listForgottenTransactions(
  session: Session,
  beforeMillis: number,
  limit: number,
): Promise<string[]> {
  return session.values(listForgotten, { before: beforeMillis, limit });
}
