import type { Kysely, RawBuilder } from "kysely";
import { raiseBranch } from "./branches.ts";
import { defineQuery } from "./queries.ts";
import type { Schema } from "./schema.ts";
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

type Row = Schema["table_versions"];
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

const insertRow = defineQuery((db, row: Row) => db.insertInto("table_versions").values(row));

/** Inserts a record that is the highest of its branch. */
export async function insertVersion(session: Session, record: VersionRecord): Promise<void> {
  const { tableId, branch: name, generation, version } = record;
  await raiseBranch(session, { tableId, name, generation, lowest: version, highest: version });
  await insertRow(session, toRow(record));
}

/** The number of rows of one statement, which blocks other requests while it runs. */
const rowsAtOnce = 50;

/** Inserts records up to the highest version that `raiseBranch` recorded. */
export async function insertVersions({ db }: Session, records: readonly VersionRecord[]): Promise<void> {
  for (let start = 0; start < records.length; start += rowsAtOnce)
    await db
      .insertInto("table_versions")
      .values(records.slice(start, start + rowsAtOnce).map(toRow))
      .execute();
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

/**
 * Selects the versions of a table on all branches, without held ones.
 *
 * @param tableId The id, or a reference to it in an outer query.
 */
export function versionsOf(db: Kysely<Schema>, tableId: number | RawBuilder<number>) {
  return presentVersions(db)
    .select("table_versions.version")
    .where("branches.table_id", "=", tableId)
    .where("table_versions.held", "=", 0);
}

/** Selects the records of the current generation of one branch, including held ones. */
export function ofBranch(db: Kysely<Schema>, tableId: number, branch: string) {
  return presentVersions(db).where("branches.table_id", "=", tableId).where("branches.name", "=", branch);
}

const versionsNumbered = defineQuery(
  (db, { tableId, branch, version }: Pick<VersionRecord, "tableId" | "branch" | "version">) =>
    ofBranch(db, tableId, branch).selectAll("table_versions").where("table_versions.version", "=", version),
);

/** Returns the record of a version, even if it is held. */
export async function findVersion(
  session: Session,
  tableId: number,
  branch: string,
  version: number,
): Promise<VersionRecord | undefined> {
  const [row] = await versionsNumbered(session, { tableId, branch, version });
  return row && toRecord(row);
}

/** Lists the records of a branch that follow the version `after`; from the beginning if it is undefined. */
export async function listVersions(
  { db }: Session,
  tableId: number,
  branch: string,
  page: { readonly after: number | undefined; readonly limit: number; readonly descending: boolean },
): Promise<VersionRecord[]> {
  const { after, limit, descending } = page;
  let versions = ofBranch(db, tableId, branch).selectAll("table_versions").where("table_versions.held", "=", 0);
  if (after !== undefined) versions = versions.where("table_versions.version", descending ? "<" : ">", after);
  const rows = await versions
    .orderBy("table_versions.version", descending ? "desc" : "asc")
    .limit(limit)
    .execute();
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

/** Lists the records of the versions `start` to `end` from earlier generations of a branch. */
export async function listLeftOverVersions(
  { db }: Session,
  { tableId, branch, generation }: Pick<VersionRecord, "tableId" | "branch" | "generation">,
  start: number,
  end: number,
): Promise<VersionRecord[]> {
  const rows = await db
    .selectFrom("table_versions")
    .selectAll()
    .where("table_id", "=", tableId)
    .where("branch", "=", branch)
    .where("generation", "<", generation)
    .where("version", ">=", start)
    .where("version", "<=", end)
    .execute();
  return rows.map(toRecord);
}

/** Reports whether a table has a version on any branch. */
export async function hasVersions({ db }: Session, tableId: number): Promise<boolean> {
  return (await versionsOf(db, tableId).limit(1).executeTakeFirst()) !== undefined;
}
