import type { Identifier } from "@tiltyard/protocol";
import { droppedNamespace, fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";
import type { TableRecord } from "./tables.ts";

/** A table that was dropped and can be undropped. */
export interface DroppedTable {
  readonly id: number;
  /** Its former name, which another table may have now. */
  readonly identifier: Identifier;
  readonly location: string;
  readonly droppedAtMillis: number;
}

interface Naming {
  readonly id: number;
  readonly namespace: string;
  readonly name: string;
  readonly dropped_from: string | null;
  readonly dropped_at: number | null;
}

const nameTable = statement((db, p: Naming) =>
  db
    .updateTable("tables")
    .set(pick(p, "namespace", "name", "dropped_from", "dropped_at"))
    .where("id", "=", p.id),
);

/** Soft delete: removes a table's name, and keeps its versions, its branches and its location. */
export async function softDeleteTable(session: Session, table: TableRecord): Promise<void> {
  await session.run(nameTable, {
    id: table.id,
    namespace: droppedNamespace,
    name: String(table.id),
    dropped_from: toPath(table.identifier),
    dropped_at: Date.now(),
  });
}

/** Removes a table's name for good. Its row stays, and so its location, until its objects are deleted. */
export async function markForPurge(session: Session, id: number): Promise<void> {
  await session.run(nameTable, {
    id,
    namespace: droppedNamespace,
    name: String(id),
    dropped_from: null,
    dropped_at: null,
  });
}

const takeLocation = statement((db, p: { id: number; location: string }) =>
  db.updateTable("tables").set({ location: p.location }).where("id", "=", p.id),
);

/** Removes a table's name and its location, which another table may have from now on. */
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

/** @returns The location of a table that has lost its name for good; undefined when it is gone, or has a name. */
export async function findTableToPurge(session: Session, id: number): Promise<string | undefined> {
  return (await session.first(findMarked, { id, namespace: droppedNamespace }))?.location;
}

/** Gives a dropped table a name again, which must be free. */
export async function restoreTableName(session: Session, id: number, to: Identifier): Promise<void> {
  await session.run(nameTable, {
    id,
    namespace: toPath(to.slice(0, -1)),
    name: to.at(-1) ?? "",
    dropped_from: null,
    dropped_at: null,
  });
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

/** The tables of a namespace and of what is under it that were dropped and are still kept, the longest first. */
export async function listDroppedTables(
  session: Session,
  page: {
    /** All when absent. */
    readonly within?: Identifier;
    /** Only those that were dropped until this time. */
    readonly untilMillis?: number;
    /** The table to go on behind; the beginning when undefined. */
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

function toDropped(row: {
  readonly id: number;
  readonly location: string;
  readonly dropped_from: string | null;
  readonly dropped_at: number | null;
}): DroppedTable {
  return {
    id: row.id,
    identifier: fromPath(row.dropped_from ?? ""),
    location: row.location,
    droppedAtMillis: row.dropped_at ?? 0,
  };
}
