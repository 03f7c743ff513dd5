import { type Kysely, type RawBuilder, type SqlBool, sql } from "kysely";
import type { Location } from "../storage/location.ts";
import { type BranchKey, raiseBranch } from "./branches.ts";
import { defineQuery } from "./queries.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";

export type VersionRecord = RecordOf<"tableVersions">;

export const visible = ["recorded", "finished"] as const;

/** Reports whether a version belongs to a batch that has not reached its commit point. */
export function isHidden({ state }: VersionRecord): boolean {
  return state === "held" || state === "condemned";
}

export interface LocatedVersion {
  readonly location: Location;
  readonly record: VersionRecord;
}

/** The exclusive end of all versions. */
export const versionsEnd = Number.MAX_SAFE_INTEGER + 1;

const insertRow = defineQuery((db, record: VersionRecord) => db.insertInto("tableVersions").values(record));

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

/** Selects the visible versions of all branches. @param tableId May refer to an outer query. */
export function versionsOf(db: Kysely<Schema>, tableId: number | RawBuilder<number>) {
  return db
    .selectFrom("branches")
    .innerJoin("tableVersions", (join) =>
      join
        .onRef("tableVersions.tableId", "=", "branches.tableId")
        .onRef("tableVersions.branch", "=", "branches.name")
        .onRef("tableVersions.generation", "=", "branches.generation"),
    )
    .select("tableVersions.version")
    .where("branches.tableId", "=", tableId)
    .where("state", "in", visible);
}

function generationOf(db: Kysely<Schema>, tableId: number, branch: string) {
  return db.selectFrom("branches").select("generation").where("tableId", "=", tableId).where("name", "=", branch);
}

/** Selects all records of a branch. SQLite would plan a join again for each run, but not a subquery. */
function allOfBranch(db: Kysely<Schema>, tableId: number, branch: string) {
  return db
    .selectFrom("tableVersions")
    .where((eb) => eb.and({ tableId, branch }))
    .where("generation", "=", generationOf(db, tableId, branch));
}

/** Selects the visible records of the current generation of one branch. */
function ofBranch(db: Kysely<Schema>, tableId: number, branch: string) {
  return allOfBranch(db, tableId, branch).where("state", "in", visible);
}

type OfBranch = Pick<VersionRecord, "tableId" | "branch">;

const versionsNumbered = defineQuery((db, { tableId, branch, version }: OfBranch & Pick<VersionRecord, "version">) =>
  allOfBranch(db, tableId, branch).selectAll().where("version", "=", version),
);

/** Returns the record of a version, even if it is hidden. */
export async function findVersion(session: Session, { table, branch }: BranchKey, version: number) {
  const [record] = await versionsNumbered(session, { tableId: table.id, branch, version });
  return record;
}

/** Lists the records of a branch that follow the version `after`; from the beginning if it is undefined. */
export async function listVersions(
  { db }: Session,
  { table, branch }: BranchKey,
  page: { readonly after: number | undefined; readonly limit: number; readonly descending: boolean },
): Promise<VersionRecord[]> {
  const { after, limit, descending } = page;
  let versions = ofBranch(db, table.id, branch).selectAll();
  if (after !== undefined) versions = versions.where("version", descending ? "<" : ">", after);
  return versions
    .orderBy("version", descending ? "desc" : "asc")
    .limit(limit)
    .execute();
}

const latestOf = defineQuery((db, { tableId, branch }: OfBranch) =>
  ofBranch(db, tableId, branch).selectAll().orderBy("version", "desc").limit(1),
);

/** Returns the visible record with the highest version of a branch. */
export async function latestVersion(session: Session, { table, branch }: BranchKey) {
  const [latest] = await latestOf(session, { tableId: table.id, branch });
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
    .where((eb) => eb.and({ tableId, branch }))
    .where("generation", "<", generation)
    .where("version", ">=", start)
    .where("version", "<=", end)
    .execute();
}

/** The versions from `start` to `end`, exclusive. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

export async function countVersions({ db }: Session, { table, branch }: BranchKey): Promise<number> {
  const { count } = await ofBranch(db, table.id, branch)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** Finds the version that follows the first `count` records of a range; undefined if it has no more. */
export async function findCut({ db }: Session, { table, branch }: BranchKey, { start, end }: Range, count: number) {
  const row = await ofBranch(db, table.id, branch)
    .select("version")
    .where("version", ">=", start)
    .where("version", "<", end)
    .orderBy("version")
    .offset(count)
    .limit(1)
    .executeTakeFirst();
  return row?.version;
}

/** Deletes the records of a range. @returns The number of deleted records. */
export async function deleteVersions({ db }: Session, at: BranchKey, { start, end }: Range): Promise<number> {
  const { branch } = at;
  const { id: tableId } = at.table;
  const { numDeletedRows } = await db
    .deleteFrom("tableVersions")
    .where((eb) => eb.and({ tableId, branch, generation: generationOf(db, tableId, branch) }))
    .where("version", ">=", start)
    .where("version", "<", end)
    .where("state", "in", visible)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Deletes some records of a deleted table across all branches and generations. @returns Whether any remain. */
export async function deleteSomeVersions({ db }: Session, tableId: number, limit: number): Promise<boolean> {
  const some = db
    .selectFrom("tableVersions")
    .select(["branch", "generation", "version"])
    .where("tableId", "=", tableId)
    .limit(limit);
  const { numDeletedRows } = await db
    .deleteFrom("tableVersions")
    .where("tableId", "=", tableId)
    .where(sql<SqlBool>`(branch, generation, version) in ${some}`)
    .executeTakeFirst();
  return Number(numDeletedRows) === limit;
}
