import type { Identifier } from "@tiltyard/protocol";
import { fromPath, toPath } from "./path.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** The location of a deregistered table. */
export interface ReservedLocation {
  readonly location: string;
  /** The former name of the table. */
  readonly identifier: Identifier;
}

const upsert = statement((db, p: { location: string; identifier: string }) =>
  db
    .insertInto("reserved_locations")
    .values({ location: p.location, identifier: p.identifier })
    .onConflict((conflict) =>
      conflict.column("location").doUpdateSet((eb) => ({ identifier: eb.ref("excluded.identifier") })),
    ),
);

export async function reserveLocation(session: Session, { location, identifier }: ReservedLocation): Promise<void> {
  await session.run(upsert, { location, identifier: toPath(identifier) });
}

const find = statement((db, p: { location: string }) =>
  db.selectFrom("reserved_locations").selectAll().where("location", "=", p.location),
);

const findBelow = statement((db, p: { from: string; to: string }) =>
  db.selectFrom("reserved_locations").selectAll().where("location", ">=", p.from).where("location", "<", p.to).limit(1),
);

/** Finds a reserved location that equals, contains or is below a location. */
export async function findReservedLocation(
  session: Session,
  location: string,
  ancestors: readonly string[],
): Promise<ReservedLocation | undefined> {
  for (const each of [location, ...ancestors]) {
    const row = await session.first(find, { location: each });
    if (row !== undefined) return { ...row, identifier: fromPath(row.identifier) };
  }
  const below = await session.first(findBelow, { from: `${location}/`, to: `${location}0` });
  return below && { ...below, identifier: fromPath(below.identifier) };
}

const remove = statement((db, p: { location: string }) =>
  db.deleteFrom("reserved_locations").where("location", "=", p.location),
);

export async function releaseLocation(session: Session, location: string): Promise<void> {
  await session.run(remove, { location });
}
