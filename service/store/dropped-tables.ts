import type { Identifier } from "@tiltyard/protocol";
import type { Kysely, Selectable } from "kysely";
import { droppedNamespace, fromPath, isWithin, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { nameOf, type TableRecord } from "./tables.ts";

/** A dropped table that can be undropped. */
export interface DroppedTable {
  readonly id: number;
  /** The former name, which another table may have now. */
  readonly identifier: Identifier;
  readonly location: string;
  readonly droppedAtMillis: number;
}

/** Removes the name of a table but keeps its versions, branches and location (soft delete). */
export async function softDeleteTable({ db }: Session, { id, identifier }: TableRecord): Promise<void> {
  await db
    .updateTable("tables")
    .set({ ...withoutName(id), dropped_from: toPath(identifier), dropped_at: Date.now() })
    .where("id", "=", id)
    .execute();
}

/** Removes the name of a table permanently. Its row and its location remain until its objects are deleted. */
export async function markForPurge({ db }: Session, id: number): Promise<void> {
  await db.updateTable("tables").set(withoutName(id)).where("id", "=", id).execute();
}

/** Removes the name and the location of a table. Another table may use both afterwards. */
export async function forgetTable({ db }: Session, id: number): Promise<void> {
  await db
    .updateTable("tables")
    .set({ ...withoutName(id), location: `forgotten:${id}` })
    .where("id", "=", id)
    .execute();
}

function withoutName(id: number) {
  return { namespace: droppedNamespace, name: String(id), dropped_from: null, dropped_at: null };
}

/** Returns the location of a table that waits for its purge; undefined if the table has a name or no longer exists. */
export async function findTableToPurge({ db }: Session, id: number): Promise<string | undefined> {
  const row = await db
    .selectFrom("tables")
    .select("location")
    .where("id", "=", id)
    .where("namespace", "=", droppedNamespace)
    .where("dropped_at", "is", null)
    .executeTakeFirst();
  return row?.location;
}

/** Restores a dropped table under a name, which must be free. */
export async function restoreTableName({ db }: Session, id: number, to: Identifier): Promise<void> {
  await db
    .updateTable("tables")
    .set({ ...nameOf(to), dropped_from: null, dropped_at: null })
    .where("id", "=", id)
    .execute();
}

/** Lists the dropped tables of a namespace and below it that can still be undropped, the earliest drop first. */
export async function listDroppedTables(
  { db }: Session,
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
  const { within = [], untilMillis, after, limit } = page;
  let tables = selectDropped(db).where(isWithin("dropped_from", within));
  if (untilMillis !== undefined) tables = tables.where("dropped_at", "<=", untilMillis);
  if (after !== undefined)
    tables = tables.where(({ eb, refTuple, tuple }) =>
      eb(refTuple("dropped_at", "id"), ">", tuple(after.droppedAtMillis, after.id)),
    );
  return (await tables.orderBy("dropped_at").orderBy("id").limit(limit).execute()).map(toDropped);
}

export async function findDroppedTable({ db }: Session, id: number): Promise<DroppedTable | undefined> {
  const row = await selectDropped(db).where("id", "=", id).executeTakeFirst();
  return row && toDropped(row);
}

function selectDropped(db: Kysely<Schema>) {
  return db
    .selectFrom("tables")
    .select(["id", "location", "dropped_from", "dropped_at"])
    .where("dropped_at", "is not", null);
}

type Row = Pick<Selectable<Schema["tables"]>, "id" | "location" | "dropped_from" | "dropped_at">;

function toDropped(row: Row): DroppedTable {
  return {
    id: row.id,
    identifier: fromPath(row.dropped_from ?? ""),
    location: row.location,
    droppedAtMillis: row.dropped_at ?? 0,
  };
}
