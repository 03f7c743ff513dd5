import type { Identifier } from "@tiltyard/protocol";
import { droppedNamespace, fromPath, toPath } from "./path.ts";
import { withNulls } from "./records.ts";
import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

export interface ViewRecord extends Omit<RecordOf<"views">, "source"> {
  readonly source: Identifier | undefined;
}

export async function findView({ db }: Session, tableId: number): Promise<ViewRecord | undefined> {
  const row = await db.selectFrom("views").selectAll().where("tableId", "=", tableId).executeTakeFirst();
  return row && { ...row, source: row.source === undefined ? undefined : fromPath(row.source) };
}

export async function putView({ db }: Session, { source, ...view }: ViewRecord): Promise<void> {
  const row = { ...view, source: source && toPath(source) };
  await db
    .insertInto("views")
    .values(row)
    .onConflict((conflict) => conflict.column("tableId").doUpdateSet(withNulls(row)))
    .execute();
  await db.updateTable("tables").set({ isView: true }).where("id", "=", view.tableId).execute();
}

export async function listViewsOf({ db }: Session, source: Identifier, after: number, limit: number) {
  const rows = await db
    .selectFrom("views")
    .innerJoin("tables", "tables.id", "views.tableId")
    .select(["views.tableId", "tables.namespace", "tables.name"])
    .where("views.source", "=", toPath(source))
    .where("views.tableId", ">", after)
    .where("tables.namespace", "!=", droppedNamespace)
    .orderBy("views.tableId")
    .limit(limit)
    .execute();
  return rows.map(({ tableId, namespace, name }) => ({ tableId, identifier: [...fromPath(namespace), name] }));
}
