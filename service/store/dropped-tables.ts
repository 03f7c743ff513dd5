import type { Identifier } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import { type Location, parseLocation } from "../storage/location.ts";
import { noteTime } from "./clock.ts";
import { droppedNamespace, follows, fromPath, isWithin, toPath } from "./path.ts";
import { updateBases } from "./reserved-locations.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { type TableRecord, updateTable } from "./tables.ts";

export interface DroppedTable {
  readonly id: number;
  /** The former name, which another table may have now. */
  readonly identifier: Identifier;
  readonly location: Location;
  readonly droppedAtMillis: number;
}

/** Removes the name of a table but keeps its versions, branches and location (soft delete). */
export async function softDeleteTable(session: Session, { id, identifier }: TableRecord): Promise<void> {
  // A jump of the clock before this drop must not extend its retention.
  await noteTime(session);
  await updateTable(session, id, { ...unnamed(id), droppedFrom: toPath(identifier), droppedAtMillis: session.time() });
}

/** Removes the name of a table permanently. Its row and its location remain until its objects are deleted. */
export async function markForPurge(session: Session, id: number): Promise<void> {
  await updateTable(session, id, unnamed(id));
  await updateBases(session, id, "separate");
}

/** The prefix of the text that replaces the location of a deregistered table. */
export const noLocation = "forgotten:";

/** Removes the name and the location of a table. Another table may use both afterwards. */
export async function forgetTable(session: Session, id: number): Promise<void> {
  await updateTable(session, id, { ...unnamed(id), location: `${noLocation}${id}` });
  await updateBases(session, id, "separate");
}

function unnamed(id: number) {
  return { namespace: droppedNamespace, name: String(id), droppedFrom: null, droppedAtMillis: null };
}

/** Returns the location of a table that waits for its purge; undefined if the table has a name or no longer exists. */
export async function findTableToPurge({ db }: Session, id: number): Promise<Location | undefined> {
  const row = await db
    .selectFrom("tables")
    .select("location")
    .where((eb) => eb.and({ id, namespace: droppedNamespace }))
    .where("droppedAtMillis", "is", null)
    .executeTakeFirst();
  return row && parseLocation(row.location);
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
  let tables = selectDropped(db)
    .where(isWithin("droppedFrom", within))
    .where(follows(["droppedAtMillis", "id"], after));
  if (untilMillis !== undefined) tables = tables.where("droppedAtMillis", "<=", untilMillis);
  return (await tables.orderBy("droppedAtMillis").orderBy("id").limit(limit).execute()).map(toDropped);
}

export async function findDroppedTable({ db }: Session, id: number): Promise<DroppedTable | undefined> {
  const row = await selectDropped(db).where("id", "=", id).executeTakeFirst();
  return row && toDropped(row);
}

function selectDropped(db: Kysely<Schema>) {
  return db
    .selectFrom("tables")
    .select(["id", "location", "droppedFrom", "droppedAtMillis"])
    .where("droppedAtMillis", "is not", null);
}

type Row = Pick<RecordOf<"tables">, "id" | "location" | "droppedFrom" | "droppedAtMillis">;

function toDropped({ id, location, droppedFrom = "", droppedAtMillis = 0 }: Row): DroppedTable {
  return { id, identifier: fromPath(droppedFrom), location: parseLocation(location), droppedAtMillis };
}
