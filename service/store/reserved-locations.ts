import type { Identifier } from "@tiltyard/protocol";
import { ancestorUris, type Location, parseLocation } from "../storage/location.ts";
import { boundsBelow, fromPath, toPath } from "./path.ts";
import { defineListQuery } from "./queries.ts";
import type { Session } from "./store.ts";

export interface ReservedLocation {
  readonly location: Location;
  readonly identifier: Identifier;
}

export async function reserveLocation({ db }: Session, reserved: ReservedLocation): Promise<void> {
  const location = reserved.location.uri;
  const identifier = toPath(reserved.identifier);
  await db
    .insertInto("reservedLocations")
    .values({ location, identifier })
    .onConflict((conflict) => conflict.column("location").doUpdateSet({ identifier }))
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
  return row && { location: parseLocation(row.location), identifier: fromPath(row.identifier) };
}

export async function releaseLocation({ db }: Session, location: Location): Promise<void> {
  await db.deleteFrom("reservedLocations").where("location", "=", location.uri).execute();
}
