import type { Session } from "./store.ts";

/** The kinds of work that commits on a table cause. */
export type AutomationKind = "backfill" | "refresh" | "compact" | "build_index" | "clean_up";

/** A rule that opens jobs, one after the other, when a table changes. */
export interface Automation {
  /** The table whose commits open the jobs. */
  readonly tableId: number;
  readonly kind: AutomationKind;
  /** A column of the table or the id of a view; empty for work on the whole table. */
  readonly target: string;
  /** The principal of the jobs. */
  readonly principal: string;
  /** The state of the table when the latest of these jobs was opened. */
  readonly seen: Seen;
}

/** The state of the rows of `main`. */
export interface Seen {
  readonly version: number;
  /** The highest id that any fragment ever had; -1 without fragments. */
  readonly fragment: number;
}

/** Inserts an automation. An existing one keeps its `seen` state. */
export async function putAutomation({ db }: Session, automation: Automation): Promise<void> {
  const { principal, seen } = automation;
  await db
    .insertInto("automations")
    .values({ ...keyOf(automation), principal, seen_version: seen.version, seen_fragment: seen.fragment })
    .onConflict((conflict) => conflict.columns(["table_id", "kind", "target"]).doUpdateSet({ principal }))
    .execute();
  await db.updateTable("tables").set({ is_automated: 1 }).where("id", "=", automation.tableId).execute();
}

export async function listAutomations({ db }: Session, tableId: number): Promise<Automation[]> {
  const rows = await db
    .selectFrom("automations")
    .selectAll()
    .where("table_id", "=", tableId)
    .orderBy("kind")
    .orderBy("target")
    .execute();
  return rows.map((row) => ({
    tableId: row.table_id,
    kind: row.kind as AutomationKind,
    target: row.target,
    principal: row.principal,
    seen: { version: row.seen_version, fragment: row.seen_fragment },
  }));
}

type Key = Pick<Automation, "tableId" | "kind" | "target">;

/** Records the rows that a new job will see. */
export async function noteSeen({ db }: Session, key: Key, { version, fragment }: Seen): Promise<void> {
  await db
    .updateTable("automations")
    .set({ seen_version: version, seen_fragment: fragment })
    .where((eb) => eb.and(keyOf(key)))
    .execute();
}

export async function deleteAutomation({ db }: Session, key: Key): Promise<void> {
  await db
    .deleteFrom("automations")
    .where((eb) => eb.and(keyOf(key)))
    .execute();
}

function keyOf({ tableId, kind, target }: Key) {
  return { table_id: tableId, kind, target };
}
