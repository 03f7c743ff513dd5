import type { Identifier } from "@tiltyard/protocol";
import { ancestorUris, type Location, parseLocation } from "../storage/location.ts";
import { boundsBelow, fromPath, toPath } from "./path.ts";
import { defineListQuery } from "./queries.ts";
import type { Session } from "./store.ts";

/** The location of a deregistered table, or a base of a table: a folder outside its location with some of its files. */
export interface ReservedLocation {
  readonly location: Location;
  /** The name of the table, or its last name. */
  readonly identifier: Identifier;
  /** The table that has the location as a base; undefined if the table was deregistered or purged. */
  readonly tableId?: number | undefined;
}

export async function reserveLocation({ db }: Session, reserved: ReservedLocation): Promise<void> {
  const location = reserved.location.uri;
  const columns = { identifier: toPath(reserved.identifier), tableId: reserved.tableId ?? null };
  await db
    .insertInto("reservedLocations")
    .values({ location, ...columns })
    .onConflict((conflict) => conflict.column("location").doUpdateSet(columns))
    .execute();
}

/** Renames the table of bases, or separates the bases from their table, so that they stay reserved for its last name. */
export async function updateBases(
  { db }: Session,
  tableId: number,
  change: { readonly identifier: Identifier } | "separate",
): Promise<void> {
  await db
    .updateTable("reservedLocations")
    .set(change === "separate" ? { tableId: null } : { identifier: toPath(change.identifier) })
    .where("tableId", "=", tableId)
    .execute();
}

const reservedAt = defineListQuery((db, locations) =>
  db
    .selectFrom("reservedLocations")
    .selectAll()
    .where("location", "in", locations)
    .orderBy("location", "desc")
    .limit(1),
);

const reservedBelow = defineListQuery((db, [from = "", to = ""]) =>
  db
    .selectFrom("reservedLocations")
    .selectAll()
    .where("location", ">=", from)
    .where("location", "<", to)
    .orderBy("location", "desc")
    .limit(1),
);

/** Finds a reserved location that equals, contains or is below a location. Prefers the location itself. */
export async function findReservedLocation(session: Session, location: Location) {
  const [at] = await reservedAt(session, [location.uri, ...ancestorUris(location)]);
  const [row = at] = at === undefined ? await reservedBelow(session, boundsBelow(location.uri)) : [];
  const { tableId } = row ?? {};
  return row && { location: parseLocation(row.location), identifier: fromPath(row.identifier), tableId };
}

/** Finds the name of the table that has a location in one of its bases. */
export async function findBaseOwner(session: Session, location: Location): Promise<Identifier | undefined> {
  const [row] = await reservedAt(session, [location.uri, ...ancestorUris(location)]);
  return row?.tableId === undefined ? undefined : fromPath(row.identifier);
}

export async function releaseLocation({ db }: Session, location: Location): Promise<void> {
  await db.deleteFrom("reservedLocations").where("location", "=", location.uri).execute();
}
