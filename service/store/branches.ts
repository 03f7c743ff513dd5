import { defineQuery } from "./queries.ts";
import type { Schema } from "./schema.ts";
import type { Session } from "./store.ts";

/** A branch, which may have no version records. */
export interface BranchRecord {
  /** Distinguishes the current records from those before the branch was emptied. */
  readonly generation: number;
  /** The highest version ever recorded in this generation; undefined without any. */
  readonly highestVersion: number | undefined;
  /** The highest version of all earlier generations; undefined without any. */
  readonly leftOverVersion: number | undefined;
  /** The number of withdrawn versions. */
  readonly withdrawals: number;
}

const none = -1;

const branchesNamed = defineQuery((db, { table_id, name }: Pick<Schema["branches"], "table_id" | "name">) =>
  db
    .selectFrom("branches")
    .select(["generation", "highest_version", "left_over_version", "withdrawals"])
    .where("table_id", "=", table_id)
    .where("name", "=", name),
);

/** Returns the branch; undefined if it never had a record. */
export async function findBranch(session: Session, tableId: number, name: string): Promise<BranchRecord | undefined> {
  const [row] = await branchesNamed(session, { table_id: tableId, name });
  return (
    row && {
      generation: row.generation,
      highestVersion: row.highest_version === none ? undefined : row.highest_version,
      leftOverVersion: row.left_over_version === none ? undefined : row.left_over_version,
      withdrawals: row.withdrawals,
    }
  );
}

/** Lists the branches, including `main`, that have had records since they were last emptied. */
export async function listBranchNames({ db }: Session, tableId: number): Promise<string[]> {
  const rows = await db
    .selectFrom("branches")
    .select("name")
    .where("table_id", "=", tableId)
    .where("highest_version", "!=", none)
    .orderBy("name")
    .execute();
  return rows.map((row) => row.name);
}

interface Raised {
  readonly tableId: number;
  readonly name: string;
  readonly generation: number;
  readonly lowest: number;
  readonly highest: number;
}

const raise = defineQuery((db, { tableId: table_id, name, generation, lowest, highest }: Raised) =>
  db
    .insertInto("branches")
    .values({
      table_id,
      name,
      generation,
      first_version: lowest,
      highest_version: highest,
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
        highest_version: highest,
      })),
    ),
);

/** Records that a branch has versions up to `highest`. A branch without versions begins at `lowest`. */
export async function raiseBranch(session: Session, branch: Raised): Promise<void> {
  await raise(session, branch);
}

/** Records that the highest version of a branch was withdrawn. Its number can be used again. */
export async function lowerBranch({ db }: Session, tableId: number, name: string, version: number): Promise<void> {
  await db
    .updateTable("branches")
    .set((eb) => ({
      highest_version: eb
        .case()
        .when("first_version", "=", version)
        .then(none)
        .else(eb("highest_version", "-", 1))
        .end(),
      withdrawals: eb("withdrawals", "+", 1),
    }))
    .where("table_id", "=", tableId)
    .where("name", "=", name)
    .where("highest_version", "=", version)
    .execute();
}

/** Begins a new generation of a branch: it has no versions, and its numbering restarts. */
export async function emptyBranch({ db }: Session, tableId: number, name: string): Promise<void> {
  await db
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
    .where("table_id", "=", tableId)
    .where("name", "=", name)
    .where("highest_version", "!=", none)
    .execute();
}
