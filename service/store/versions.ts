import type { Kysely } from "kysely";
import { raiseBranch } from "./branches.ts";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A row of `table_versions`. */
export interface VersionRecord {
  readonly tableId: number;
  readonly branch: string;
  readonly generation: number;
  readonly version: number;
  readonly manifestName: string;
  readonly committedName: string;
  /** The identity of the manifest's content in its object store; undefined in records of earlier releases. */
  readonly identity: string | undefined;
  readonly finished: boolean;
  /** Marks a record of a batch before its commit point. Held versions are hidden. */
  readonly held: boolean;
  /** Marks a record of a batch that is being rolled back. */
  readonly condemned: boolean;
  readonly manifestSize: number | undefined;
  readonly eTag: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly timestampMillis: number;
  readonly transactionId: string;
}

/** A record with the location of its table. */
export interface LocatedVersion {
  readonly location: string;
  readonly record: VersionRecord;
}

/** The exclusive end of all versions. */
export const versionsEnd = Number.MAX_SAFE_INTEGER + 1;

export type Row = Schema["table_versions"];
const condemned = 2;

export function toRecord(row: Row): VersionRecord {
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

const insert = statement((db, p: Row) => db.insertInto("table_versions").values(pick(p, ...columns)));

/** Inserts a record that is the highest of its branch. */
export async function insertVersion(session: Session, record: VersionRecord): Promise<void> {
  const { tableId, branch: name, generation, version } = record;
  await raiseBranch(session, { tableId, name, generation, lowest: version, highest: version });
  await session.run(insert, toRow(record));
}

const rowsAtOnce = 50;

/** The values of several rows, each named after its column and the number of its row. */
type Rows = { readonly [Name in `${keyof Row}${number}`]: Row[keyof Row] };

const insertSome = statement((db, p: Rows) =>
  db.insertInto("table_versions").values(
    Array.from({ length: rowsAtOnce }, (_, index) => {
      const of = (name: keyof Row) => [name, p[`${name}${index}`]];
      return Object.fromEntries(columns.map(of)) as unknown as Row;
    }),
  ),
);

/** Inserts records up to the highest version that `raiseBranch` recorded, many of them with one statement. */
export async function insertVersions(session: Session, records: readonly VersionRecord[]): Promise<void> {
  const rows = records.map(toRow);
  while (rows.length >= rowsAtOnce) {
    const some = rows.splice(0, rowsAtOnce);
    const values = some.flatMap((row, index) => columns.map((name) => [`${name}${index}`, row[name]]));
    await session.run(insertSome, Object.fromEntries(values) as Rows);
  }
  for (const row of rows) await session.run(insert, row);
}

/** Selects the records of the current generation of each branch, including held ones. */
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

/** Selects the records of the current generation of one branch, including held ones. */
export function ofBranch(db: Kysely<Schema>, p: { readonly table_id: number; readonly branch: string }) {
  return presentVersions(db).where(({ and }) => and({ "branches.table_id": p.table_id, "branches.name": p.branch }));
}

const find = statement((db, p: { table_id: number; branch: string; version: number }) =>
  ofBranch(db, p).selectAll("table_versions").where("table_versions.version", "=", p.version),
);

/** Returns the record of a version, even if it is held. */
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

/** Lists the records of a branch that follow the version `after`; from the beginning if it is undefined. */
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

/** Returns the record with the highest version of a branch. */
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
      .where(({ and }) => and(pick(p, "table_id", "branch")))
      .where("generation", "<", p.generation)
      .where("version", ">=", p.start)
      .where("version", "<=", p.end),
);

/** Lists the records of the versions `start` to `end` from earlier generations of a branch. */
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

/** Reports whether a table has a version on any branch. */
export async function hasVersions(session: Session, tableId: number): Promise<boolean> {
  return (await session.first(hasAny, { table_id: tableId })) !== undefined;
}
