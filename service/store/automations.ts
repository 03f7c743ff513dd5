import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
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

const insert = statement((db, p: Schema["automations"]) =>
  db
    .insertInto("automations")
    .values(pick(p, "table_id", "kind", "target", "principal", "seen_version", "seen_fragment"))
    .onConflict((conflict) =>
      conflict.columns(["table_id", "kind", "target"]).doUpdateSet((eb) => ({
        principal: eb.ref("excluded.principal"),
      })),
    ),
);
const mark = statement((db, p: { id: number }) =>
  db.updateTable("tables").set({ is_automated: 1 }).where("id", "=", p.id),
);

/** Inserts an automation. An existing one keeps its `seen` state. */
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

const see = statement((db, p: Omit<Schema["automations"], "principal">) =>
  db
    .updateTable("automations")
    .set(pick(p, "seen_version", "seen_fragment"))
    .where(({ and }) => and(pick(p, "table_id", "kind", "target"))),
);

/** Records the rows that a new job will see. */
export async function noteSeen(session: Session, key: Key, seen: Seen): Promise<void> {
  const { tableId: table_id, kind, target } = key;
  await session.run(see, { table_id, kind, target, seen_version: seen.version, seen_fragment: seen.fragment });
}

const remove = statement((db, p: { table_id: number; kind: string; target: string }) =>
  db.deleteFrom("automations").where(({ and }) => and(pick(p, "table_id", "kind", "target"))),
);

export async function deleteAutomation(session: Session, key: Key): Promise<void> {
  await session.run(remove, { table_id: key.tableId, kind: key.kind, target: key.target });
}
