import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

export interface Automation extends Omit<RecordOf<"automations">, "seenVersion" | "seenFragment"> {
  /** The state of the table when the latest of these jobs was opened. */
  readonly seen: Seen;
}

export interface Seen {
  readonly version: number;
  /** The highest id that any fragment ever had; -1 without fragments. */
  readonly fragment: number;
}

export async function putAutomation({ db }: Session, automation: Omit<Automation, "sinceMillis">): Promise<void> {
  const { principal, seen } = automation;
  await db
    .insertInto("automations")
    .values({
      ...keyOf(automation),
      principal,
      seenVersion: seen.version,
      seenFragment: seen.fragment,
      sinceMillis: Date.now(),
    })
    .onConflict((conflict) => conflict.columns(["tableId", "kind", "target"]).doUpdateSet({ principal }))
    .execute();
  await db.updateTable("tables").set({ isAutomated: true }).where("id", "=", automation.tableId).execute();
}

export async function listAutomations({ db }: Session, tableId: number): Promise<Automation[]> {
  const rows = await db
    .selectFrom("automations")
    .selectAll()
    .where("tableId", "=", tableId)
    .orderBy("kind")
    .orderBy("target")
    .execute();
  return rows.map(({ seenVersion: version, seenFragment: fragment, ...row }) => ({
    ...row,
    seen: { version, fragment },
  }));
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

type Key = Pick<Automation, "tableId" | "kind" | "target">;

/** Records the rows that the next job need not see. @param sinceMillis The time at which a job for them was opened. */
export async function noteSeen({ db }: Session, key: Key, { version, fragment }: Seen, sinceMillis?: number) {
  await db
    .updateTable("automations")
    .set({
      seenVersion: version,
      seenFragment: fragment,
      ...(sinceMillis !== undefined && { sinceMillis }),
    })
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
