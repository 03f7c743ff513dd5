import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** What commits on a table are for: a column is filled, a view is refreshed, or the table is looked after. */
export type AutomationKind = "backfill" | "refresh" | "compact" | "build_index" | "clean_up";

/** Jobs that the catalog opens by itself, one after the other. */
export interface Automation {
  /** The table whose commits they follow. */
  readonly tableId: number;
  readonly kind: AutomationKind;
  /** A column of the table, or the id of a view; empty for what is done to the whole table. */
  readonly target: string;
  /** The principal that its jobs run for. */
  readonly principal: string;
  /** The table as it was when the latest of these jobs was opened. */
  readonly seen: Seen;
}

/** How far the rows of main have come. */
export interface Seen {
  readonly version: number;
  /** The highest fragment that there ever was; -1 when there was none. */
  readonly fragment: number;
}

const insert = statement((db, p: Schema["automations"]) =>
  db
    .insertInto("automations")
    .values({
      table_id: p.table_id,
      kind: p.kind,
      target: p.target,
      principal: p.principal,
      seen_version: p.seen_version,
      seen_fragment: p.seen_fragment,
    })
    .onConflict((conflict) =>
      conflict.columns(["table_id", "kind", "target"]).doUpdateSet((eb) => ({
        principal: eb.ref("excluded.principal"),
      })),
    ),
);
const mark = statement((db, p: { id: number }) =>
  db.updateTable("tables").set({ is_automated: 1 }).where("id", "=", p.id),
);

/** Opens jobs from now on; what was seen of a present one stays. */
export async function putAutomation(session: Session, automation: Automation): Promise<void> {
  const { tableId: table_id, kind, target, principal, seen } = automation;
  const { version: seen_version, fragment: seen_fragment } = seen;
  await session.run(insert, { table_id, kind, target, principal, seen_version, seen_fragment });
  await session.run(mark, { id: table_id });
}

const list = statement((db, p: { table_id: number }) =>
  db.selectFrom("automations").selectAll().where("table_id", "=", p.table_id).orderBy("kind").orderBy("target"),
);

export async function listAutomations(session: Session, tableId: number): Promise<Automation[]> {
  return (await session.all(list, { table_id: tableId })).map((row) => ({
    tableId: row.table_id,
    kind: row.kind as AutomationKind,
    target: row.target,
    principal: row.principal,
    seen: { version: row.seen_version, fragment: row.seen_fragment },
  }));
}

type Key = Pick<Automation, "tableId" | "kind" | "target">;

const see = statement(
  (db, p: { table_id: number; kind: string; target: string; seen_version: number; seen_fragment: number }) =>
    db
      .updateTable("automations")
      .set({ seen_version: p.seen_version, seen_fragment: p.seen_fragment })
      .where("table_id", "=", p.table_id)
      .where("kind", "=", p.kind)
      .where("target", "=", p.target),
);

/** Notes which rows a job will see. */
export async function noteSeen(session: Session, key: Key, seen: Seen): Promise<void> {
  const { tableId: table_id, kind, target } = key;
  await session.run(see, { table_id, kind, target, seen_version: seen.version, seen_fragment: seen.fragment });
}

const remove = statement((db, p: { table_id: number; kind: string; target: string }) =>
  db
    .deleteFrom("automations")
    .where("table_id", "=", p.table_id)
    .where("kind", "=", p.kind)
    .where("target", "=", p.target),
);

/** Opens no more of these jobs. */
export async function deleteAutomation(session: Session, key: Key): Promise<void> {
  await session.run(remove, { table_id: key.tableId, kind: key.kind, target: key.target });
}
