import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

export type Automation = RecordOf<"automations">;
type Key = Pick<Automation, "tableId" | "kind" | "target">;

/** The state of a table whose rows the next job need not see. */
export interface Seen {
  readonly version: number;
  /** The highest id that any fragment ever had; -1 without fragments. */
  readonly fragment: number;
}

export async function putAutomation(
  { db, time }: Session,
  automation: Key & Pick<Automation, "principal">,
  seen: Seen,
) {
  const { principal } = automation;
  await db
    .insertInto("automations")
    .values({ ...keyOf(automation), ...columnsOf(seen), principal, sinceMillis: time() })
    .onConflict((conflict) => conflict.columns(["tableId", "kind", "target"]).doUpdateSet({ principal }))
    .execute();
  await db.updateTable("tables").set({ isAutomated: true }).where("id", "=", automation.tableId).execute();
}

export async function listAutomations({ db }: Session, tableId: number): Promise<Automation[]> {
  const automations = db.selectFrom("automations").selectAll().where("tableId", "=", tableId);
  return automations.orderBy("kind").orderBy("target").execute();
}

/** Lists the ids of the tables whose new rows refresh a view. */
export async function listSourcesOf({ db }: Session, viewId: number): Promise<number[]> {
  const rows = await db
    .selectFrom("automations")
    .select("tableId")
    .where((eb) => eb.and({ kind: "refresh", target: String(viewId) }))
    .execute();
  return rows.map(({ tableId }) => tableId);
}

/** Records the rows that the next job need not see. @param sinceMillis The time at which a job for them was opened. */
export async function noteSeen({ db }: Session, key: Key, seen: Seen, sinceMillis?: number) {
  await db
    .updateTable("automations")
    .set({ ...columnsOf(seen), ...(sinceMillis !== undefined && { sinceMillis }) })
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
  return { tableId, kind, target };
}

function columnsOf({ version, fragment }: Seen) {
  return { seenVersion: version, seenFragment: fragment };
}
