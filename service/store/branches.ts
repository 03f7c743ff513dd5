import { defineQuery } from "./queries.ts";
import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

export interface BranchKey {
  readonly table: { readonly id: number };
  readonly branch: string;
}

/** A branch, which may have no version records. */
export interface BranchRecord {
  /** Distinguishes the current records from those before the branch was emptied. */
  readonly generation: number;
  /** The highest version ever recorded in this generation; undefined without any. */
  readonly highestVersion: number | undefined;
  /** The highest version of all earlier generations; undefined without any. */
  readonly leftOverVersion: number | undefined;
  readonly withdrawals: number;
}

const none = -1;

const branchesNamed = defineQuery((db, { tableId, name }: Pick<RecordOf<"branches">, "tableId" | "name">) =>
  db
    .selectFrom("branches")
    .select(["generation", "highestVersion", "leftOverVersion", "withdrawals"])
    .where("tableId", "=", tableId)
    .where("name", "=", name),
);

/** Returns the branch; undefined if it never had a record. */
export async function findBranch(session: Session, { table, branch }: BranchKey): Promise<BranchRecord | undefined> {
  const [row] = await branchesNamed(session, { tableId: table.id, name: branch });
  const known = (version: number) => (version === none ? undefined : version);
  return row && { ...row, highestVersion: known(row.highestVersion), leftOverVersion: known(row.leftOverVersion) };
}

/** Lists the branches, including `main`, that have had records since they were last emptied. */
export async function listBranchNames({ db }: Session, tableId: number): Promise<string[]> {
  const rows = await db
    .selectFrom("branches")
    .select("name")
    .where("tableId", "=", tableId)
    .where("highestVersion", "!=", none)
    .orderBy("name")
    .execute();
  return rows.map((row) => row.name);
}

interface Raised extends Pick<RecordOf<"branches">, "tableId" | "name" | "generation"> {
  readonly lowest: number;
  readonly highest: number;
}

/** Records that a branch has versions up to `highest`. A branch without versions begins at `lowest`. */
export const raiseBranch = defineQuery((db, { tableId, name, generation, lowest, highest }: Raised) =>
  db
    .insertInto("branches")
    .values({ tableId, name, generation, firstVersion: lowest, highestVersion: highest, leftOverVersion: none })
    .onConflict((conflict) =>
      conflict.columns(["tableId", "name"]).doUpdateSet((eb) => ({
        firstVersion: eb
          .case()
          .when("branches.highestVersion", "=", none)
          .then(eb.ref("excluded.firstVersion"))
          .else(eb.ref("branches.firstVersion"))
          .end(),
        highestVersion: highest,
      })),
    ),
);

/** Records that the highest version of a branch was withdrawn. Its number can be used again. */
export async function lowerBranch({ db }: Session, tableId: number, name: string, version: number): Promise<void> {
  await db
    .updateTable("branches")
    .set((eb) => ({
      highestVersion: eb
        .case()
        .when("firstVersion", "=", version)
        .then(none)
        .else(eb("highestVersion", "-", 1))
        .end(),
      withdrawals: eb("withdrawals", "+", 1),
    }))
    .where((eb) => eb.and({ tableId, name, highestVersion: version }))
    .execute();
}

/** Begins a new generation of a branch: it has no versions, and its numbering restarts. */
export async function emptyBranch({ db }: Session, { table, branch }: BranchKey): Promise<void> {
  await db
    .updateTable("branches")
    .set((eb) => ({
      generation: eb("generation", "+", 1),
      leftOverVersion: eb
        .case()
        .when("highestVersion", ">", eb.ref("leftOverVersion"))
        .then(eb.ref("highestVersion"))
        .else(eb.ref("leftOverVersion"))
        .end(),
      firstVersion: none,
      highestVersion: none,
    }))
    .where((eb) => eb.and({ tableId: table.id, name: branch }))
    .where("highestVersion", "!=", none)
    .execute();
}
