import type { Kysely, RawBuilder } from "kysely";
import { raiseBranch } from "./branches.ts";
import { defineQuery } from "./queries.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";

export type VersionRecord = RecordOf<"tableVersions">;

/** The value of `held` in records of a batch that is being rolled back. */
export const condemned = 2;

/** A record with the location of its table. */
export interface LocatedVersion {
  readonly location: string;
  readonly record: VersionRecord;
}

/** The exclusive end of all versions. */
export const versionsEnd = Number.MAX_SAFE_INTEGER + 1;

const insertRow = defineQuery((db, record: VersionRecord) => db.insertInto("tableVersions").values(record));

/** Inserts a record that is the highest of its branch. */
export async function insertVersion(session: Session, record: VersionRecord): Promise<void> {
  const { tableId, branch: name, generation, version } = record;
  await raiseBranch(session, { tableId, name, generation, lowest: version, highest: version });
  await insertRow(session, record);
}

/** The number of rows of one statement, which blocks other requests while it runs. */
const rowsAtOnce = 50;

/** Inserts records up to the highest version that `raiseBranch` recorded. */
export async function insertVersions({ db }: Session, records: readonly VersionRecord[]): Promise<void> {
  for (let start = 0; start < records.length; start += rowsAtOnce)
    await db
      .insertInto("tableVersions")
      .values(records.slice(start, start + rowsAtOnce))
      .execute();
}

/** Selects the records of the current generation of each branch, including held ones. */
function presentVersions(db: Kysely<Schema>) {
  return db
    .selectFrom("branches")
    .innerJoin("tableVersions", (join) =>
      join
        .onRef("tableVersions.tableId", "=", "branches.tableId")
        .onRef("tableVersions.branch", "=", "branches.name")
        .onRef("tableVersions.generation", "=", "branches.generation"),
    );
}

/**
 * Selects the versions of a table on all branches, without held ones.
 *
 * @param tableId The id, or a reference to it in an outer query.
 */
export function versionsOf(db: Kysely<Schema>, tableId: number | RawBuilder<number>) {
  return presentVersions(db)
    .select("tableVersions.version")
    .where("branches.tableId", "=", tableId)
    .where("tableVersions.held", "=", 0);
}

/** Selects the records of the current generation of one branch, including held ones. */
export function ofBranch(db: Kysely<Schema>, tableId: number, branch: string) {
  return presentVersions(db).where("branches.tableId", "=", tableId).where("branches.name", "=", branch);
}

const versionsNumbered = defineQuery(
  (db, { tableId, branch, version }: Pick<VersionRecord, "tableId" | "branch" | "version">) =>
    ofBranch(db, tableId, branch).selectAll("tableVersions").where("tableVersions.version", "=", version),
);

/** Returns the record of a version, even if it is held. */
export async function findVersion(
  session: Session,
  tableId: number,
  branch: string,
  version: number,
): Promise<VersionRecord | undefined> {
  const [record] = await versionsNumbered(session, { tableId, branch, version });
  return record;
}

/** Lists the records of a branch that follow the version `after`; from the beginning if it is undefined. */
export async function listVersions(
  { db }: Session,
  tableId: number,
  branch: string,
  page: { readonly after: number | undefined; readonly limit: number; readonly descending: boolean },
): Promise<VersionRecord[]> {
  const { after, limit, descending } = page;
  let versions = ofBranch(db, tableId, branch).selectAll("tableVersions").where("tableVersions.held", "=", 0);
  if (after !== undefined) versions = versions.where("tableVersions.version", descending ? "<" : ">", after);
  return versions
    .orderBy("tableVersions.version", descending ? "desc" : "asc")
    .limit(limit)
    .execute();
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
  return db
    .selectFrom("tableVersions")
    .selectAll()
    .where("tableId", "=", tableId)
    .where("branch", "=", branch)
    .where("generation", "<", generation)
    .where("version", ">=", start)
    .where("version", "<=", end)
    .execute();
}
