import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { ofBranch } from "./versions.ts";

interface Branch {
  readonly table_id: number;
  readonly branch: string;
}

/** The versions from `start` to `end`, exclusive. */
interface Range {
  readonly start: number;
  readonly end: number;
}

const count = statement((db, p: Branch) =>
  ofBranch(db, p)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("table_versions.held", "=", 0),
);

/** Counts the records of a branch. */
export async function countVersions(session: Session, tableId: number, branch: string): Promise<number> {
  return Number((await session.first(count, { table_id: tableId, branch }))?.count ?? 0);
}

const findAfterMany = statement((db, p: Branch & Range & { count: number }) =>
  ofBranch(db, p)
    .select("table_versions.version")
    .where("table_versions.version", ">=", p.start)
    .where("table_versions.version", "<", p.end)
    .orderBy("table_versions.version")
    .offset(p.count)
    .limit(1),
);

/**
 * Finds the cut of a range whose first part has `count` records.
 *
 * @returns The version of the first record of the second part; undefined if the range has no more records.
 */
export async function findCut(
  session: Session,
  tableId: number,
  branch: string,
  range: Range,
  count: number,
): Promise<number | undefined> {
  return (await session.first(findAfterMany, { table_id: tableId, branch, ...range, count }))?.version;
}

const removeRange = statement((db, p: Branch & Range) =>
  db
    .deleteFrom("table_versions")
    .where(({ and }) => and({ ...pick(p, "table_id", "branch"), held: 0 }))
    .where("generation", "=", (eb) =>
      eb
        .selectFrom("branches")
        .select("generation")
        .where(({ and }) => and({ table_id: p.table_id, name: p.branch })),
    )
    .where("version", ">=", p.start)
    .where("version", "<", p.end),
);

/** Deletes the records of a range. @returns The number of deleted records. */
export function deleteVersions(session: Session, tableId: number, branch: string, range: Range): Promise<number> {
  return session.run(removeRange, { table_id: tableId, branch, ...range });
}

const listSome = statement((db, p: { table_id: number; limit: number }) =>
  db
    .selectFrom("table_versions")
    .select(["branch", "generation", "version"])
    .where("table_id", "=", p.table_id)
    .limit(p.limit),
);

const removeOfGeneration = statement((db, p: Branch & { generation: number; from: number; to: number }) =>
  db
    .deleteFrom("table_versions")
    .where(({ and }) => and(pick(p, "table_id", "branch", "generation")))
    .where("version", ">=", p.from)
    .where("version", "<=", p.to),
);

/** Deletes some records of a deleted table across all branches and generations. @returns Whether any remain. */
export async function deleteSomeVersions(session: Session, tableId: number, limit: number): Promise<boolean> {
  const rows = await session.all(listSome, { table_id: tableId, limit });
  const byGeneration = Map.groupBy(rows, ({ branch, generation }) => `${generation} ${branch}`);
  for (const group of byGeneration.values()) {
    const [{ branch, generation } = { branch: "", generation: 0 }] = group;
    const versions = group.map(({ version }) => version);
    const [from, to] = [Math.min(...versions), Math.max(...versions)];
    await session.run(removeOfGeneration, { table_id: tableId, branch, generation, from, to });
  }
  return rows.length === limit;
}
