import type { Identifier } from "@tiltyard/protocol";
import { fromPath, toPath } from "./path.ts";
import type { Session } from "./store.ts";

/** The location of a deregistered table. */
export interface ReservedLocation {
  readonly location: string;
  /** The former name of the table. */
  readonly identifier: Identifier;
}

export async function reserveLocation({ db }: Session, reserved: ReservedLocation): Promise<void> {
  const { location } = reserved;
  const identifier = toPath(reserved.identifier);
  await db
    .insertInto("reservedLocations")
    .values({ location, identifier })
    .onConflict((conflict) => conflict.column("location").doUpdateSet({ identifier }))
    .execute();
}

/**
 * Finds a reserved location that equals, contains or is below a location. Prefers the location itself.
 *
 * @param ancestors The locations that contain the location.
 */
export async function findReservedLocation(
  { db }: Session,
  location: string,
  ancestors: readonly string[],
): Promise<ReservedLocation | undefined> {
  const reserved = db.selectFrom("reservedLocations").selectAll().orderBy("location", "desc").limit(1);
  const below = reserved.where("location", ">=", `${location}/`).where("location", "<", `${location}0`);
  const row =
    (await reserved.where("location", "in", [location, ...ancestors]).executeTakeFirst()) ??
    (await below.executeTakeFirst());
  return row && { ...row, identifier: fromPath(row.identifier) };
}

export async function releaseLocation({ db }: Session, location: string): Promise<void> {
  await db.deleteFrom("reservedLocations").where("location", "=", location).execute();
}
