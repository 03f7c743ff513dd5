import type { Identifier } from "@tiltyard/protocol";
import type { Selectable } from "kysely";
import { droppedNamespace, fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import type { TableRecord } from "./tables.ts";

/** A dropped table that can be undropped. */
export interface DroppedTable {
  readonly id: number;
  /** The former name, which another table may have now. */
  readonly identifier: Identifier;
  readonly location: string;
  readonly droppedAtMillis: number;
}

type Naming = Pick<Selectable<Schema["tables"]>, "id" | "namespace" | "name" | "dropped_from" | "dropped_at">;

const nameTable = statement((db, p: Naming) =>
  db
    .updateTable("tables")
    .set(pick(p, "namespace", "name", "dropped_from", "dropped_at"))
    .where("id", "=", p.id),
);

/** Removes the name of a table but keeps its versions, branches and location (soft delete). */
export async function softDeleteTable(session: Session, table: TableRecord): Promise<void> {
  const dropped_from = toPath(table.identifier);
  await session.run(nameTable, { ...withoutName(table.id), dropped_from, dropped_at: Date.now() });
}

/** Removes the name of a table permanently. Its row and its location remain until its objects are deleted. */
export async function markForPurge(session: Session, id: number): Promise<void> {
  await session.run(nameTable, withoutName(id));
}

function withoutName(id: number): Naming {
  return { id, namespace: droppedNamespace, name: String(id), dropped_from: null, dropped_at: null };
}

const takeLocation = statement((db, p: { id: number; location: string }) =>
  db.updateTable("tables").set({ location: p.location }).where("id", "=", p.id),
);

/** Removes the name and the location of a table. Another table may use both afterwards. */
export async function forgetTable(session: Session, id: number): Promise<void> {
  await markForPurge(session, id);
  await session.run(takeLocation, { id, location: `forgotten:${id}` });
}

const findMarked = statement((db, p: { id: number; namespace: string }) =>
  db
    .selectFrom("tables")
    .select("location")
    .where("id", "=", p.id)
    .where("namespace", "=", p.namespace)
    .where("dropped_at", "is", null),
);

/** Returns the location of a table that waits for its purge; undefined if the table has a name or no longer exists. */
export async function findTableToPurge(session: Session, id: number): Promise<string | undefined> {
  return (await session.first(findMarked, { id, namespace: droppedNamespace }))?.location;
}

/** Restores a dropped table under a name, which must be free. */
export async function restoreTableName(session: Session, id: number, to: Identifier): Promise<void> {
  const [namespace, name] = [toPath(to.slice(0, -1)), to.at(-1) ?? ""];
  await session.run(nameTable, { id, namespace, name, dropped_from: null, dropped_at: null });
}

const list = statement((db, p: Subtree & { after: number; id: number; until: number; limit: number }) =>
  db
    .selectFrom("tables")
    .select(["id", "location", "dropped_from", "dropped_at"])
    .where("dropped_at", "is not", null)
    .where("dropped_at", "<=", p.until)
    .where(({ eb, refTuple, tuple }) => eb(refTuple("dropped_at", "id"), ">", tuple(p.after, p.id)))
    .where(isWithin("dropped_from", p))
    .orderBy("dropped_at")
    .orderBy("id")
    .limit(p.limit),
);

/** Lists the dropped tables of a namespace and below it that can still be undropped, the earliest drop first. */
export async function listDroppedTables(
  session: Session,
  page: {
    /** The namespace; all namespaces when absent. */
    readonly within?: Identifier;
    /** The latest time of the drop, inclusive. */
    readonly untilMillis?: number;
    /** The table that the page follows; the beginning when undefined. */
    readonly after?: Pick<DroppedTable, "id" | "droppedAtMillis"> | undefined;
    readonly limit: number;
  },
): Promise<DroppedTable[]> {
  const rows = await session.all(list, {
    ...subtree(page.within ?? []),
    until: page.untilMillis ?? Number.MAX_SAFE_INTEGER,
    after: page.after?.droppedAtMillis ?? -1,
    id: page.after?.id ?? 0,
    limit: page.limit,
  });
  return rows.map(toDropped);
}

const find = statement((db, p: { id: number }) =>
  db
    .selectFrom("tables")
    .select(["id", "location", "dropped_from", "dropped_at"])
    .where("id", "=", p.id)
    .where("dropped_at", "is not", null),
);

export async function findDroppedTable(session: Session, id: number): Promise<DroppedTable | undefined> {
  const row = await session.first(find, { id });
  return row && toDropped(row);
}

function toDropped(row: Omit<Naming, "namespace" | "name"> & { readonly location: string }): DroppedTable {
  return {
    id: row.id,
    identifier: fromPath(row.dropped_from ?? ""),
    location: row.location,
    droppedAtMillis: row.dropped_at ?? 0,
  };
}
