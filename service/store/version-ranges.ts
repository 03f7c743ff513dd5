import { type SqlBool, sql } from "kysely";
import type { Session } from "./store.ts";
import { ofBranch } from "./versions.ts";

/** The versions from `start` to `end`, exclusive. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Counts the records of a branch. */
export async function countVersions({ db }: Session, tableId: number, branch: string): Promise<number> {
  const { count } = await ofBranch(db, tableId, branch)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("tableVersions.held", "=", 0)
    .executeTakeFirstOrThrow();
  return count;
}

/**
 * Finds the cut of a range whose first part has `count` records.
 *
 * @returns The version of the first record of the second part; undefined if the range has no more records.
 */
export async function findCut(
  { db }: Session,
  tableId: number,
  branch: string,
  { start, end }: Range,
  count: number,
): Promise<number | undefined> {
  const row = await ofBranch(db, tableId, branch)
    .select("tableVersions.version")
    .where("tableVersions.version", ">=", start)
    .where("tableVersions.version", "<", end)
    .orderBy("tableVersions.version")
    .offset(count)
    .limit(1)
    .executeTakeFirst();
  return row?.version;
}

/** Deletes the records of a range. @returns The number of deleted records. */
export async function deleteVersions(
  { db }: Session,
  tableId: number,
  branch: string,
  { start, end }: Range,
): Promise<number> {
  const generation = db
    .selectFrom("branches")
    .select("generation")
    .where("tableId", "=", tableId)
    .where("name", "=", branch);
  const { numDeletedRows } = await db
    .deleteFrom("tableVersions")
    .where("tableId", "=", tableId)
    .where("branch", "=", branch)
    .where("generation", "=", generation)
    .where("version", ">=", start)
    .where("version", "<", end)
    .where("held", "=", 0)
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
