import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** What the catalog knows of a branch, also of one without records. */
export interface BranchRecord {
  /** Tells the records of now from those of before the branch was emptied. */
  readonly generation: number;
  /** The highest version ever recorded in this generation; undefined when none was. */
  readonly highestVersion: number | undefined;
  /** The highest version of all earlier generations; undefined when there was none. */
  readonly leftOverVersion: number | undefined;
  /** How often a version was taken back. */
  readonly withdrawals: number;
}

const none = -1;

const find = statement((db, p: { table_id: number; name: string }) =>
  db
    .selectFrom("branches")
    .select(["generation", "highest_version", "left_over_version", "withdrawals"])
    .where("table_id", "=", p.table_id)
    .where("name", "=", p.name),
);

/** @returns undefined for a branch that never had a record. */
export async function findBranch(session: Session, tableId: number, name: string): Promise<BranchRecord | undefined> {
  const row = await session.first(find, { table_id: tableId, name });
  return (
    row && {
      generation: row.generation,
      highestVersion: row.highest_version === none ? undefined : row.highest_version,
      leftOverVersion: row.left_over_version === none ? undefined : row.left_over_version,
      withdrawals: row.withdrawals,
    }
  );
}

const list = statement((db, p: { table_id: number }) =>
  db
    .selectFrom("branches")
    .select("name")
    .where("table_id", "=", p.table_id)
    .where("highest_version", "!=", none)
    .orderBy("name"),
);

/** The branches that have records, or had some since they were last emptied; `main` among them. */
export async function listBranchNames(session: Session, tableId: number): Promise<string[]> {
  return session.values(list, { table_id: tableId });
}

const raise = statement(
  (db, p: { table_id: number; name: string; generation: number; lowest: number; highest: number }) =>
    db
      .insertInto("branches")
      .values({
        table_id: p.table_id,
        name: p.name,
        generation: p.generation,
        first_version: p.lowest,
        highest_version: p.highest,
        left_over_version: none,
      })
      .onConflict((conflict) =>
        conflict.columns(["table_id", "name"]).doUpdateSet((eb) => ({
          first_version: eb
            .case()
            .when("branches.highest_version", "=", none)
            .then(eb.ref("excluded.first_version"))
            .else(eb.ref("branches.first_version"))
            .end(),
          highest_version: eb.ref("excluded.highest_version"),
        })),
      ),
);

/** Notes that a branch has versions up to `highest` now, which begin at `lowest` when it had none. */
export async function raiseBranch(
  session: Session,
  branch: {
    readonly tableId: number;
    readonly name: string;
    readonly generation: number;
    readonly lowest: number;
    readonly highest: number;
  },
): Promise<void> {
  const { tableId, name, generation, lowest, highest } = branch;
  await session.run(raise, { table_id: tableId, name, generation, lowest, highest });
}

const lower = statement((db, p: { table_id: number; name: string; version: number }) =>
  db
    .updateTable("branches")
    .set((eb) => ({
      highest_version: eb
        .case()
        .when("first_version", "=", p.version)
        .then(none)
        .else(eb("highest_version", "-", 1))
        .end(),
      withdrawals: eb("withdrawals", "+", 1),
    }))
    .where("table_id", "=", p.table_id)
    .where("name", "=", p.name)
    .where("highest_version", "=", p.version),
);

/** Notes that the highest version of a branch turned out to be none: its number is free again. */
export async function lowerBranch(session: Session, tableId: number, name: string, version: number): Promise<void> {
  await session.run(lower, { table_id: tableId, name, version });
}

const empty = statement((db, p: { table_id: number; name: string }) =>
  db
    .updateTable("branches")
    .set((eb) => ({
      generation: eb("generation", "+", 1),
      left_over_version: eb
        .case()
        .when("highest_version", ">", eb.ref("left_over_version"))
        .then(eb.ref("highest_version"))
        .else(eb.ref("left_over_version"))
        .end(),
      first_version: none,
      highest_version: none,
    }))
    .where("table_id", "=", p.table_id)
    .where("name", "=", p.name)
    .where("highest_version", "!=", none),
);

/** Begins a new generation of a branch: it has no version any more, and its numbering starts again. */
export async function emptyBranch(session: Session, tableId: number, name: string): Promise<void> {
  await session.run(empty, { table_id: tableId, name });
}
