import { CatalogError, type Identifier } from "@tiltyard/protocol";
import { ancestorUris, childLocation, contains, type Location, parseLocation } from "../storage/location.ts";
import type { Session } from "../store/store.ts";
import { isLocationTaken } from "../store/tables.ts";

/** Decides where tables may live. */
export interface Locations {
  /** A new location in the warehouse for a table, which no other table ever had. */
  choose(identifier: Identifier): Location;
  /**
   * Reads a location that a client asks for: an absolute one, or a path inside the warehouse.
   *
   * @throws CatalogError InvalidInput when it is outside of what the operator allows.
   */
  read(text: string): Location;
}

/**
 * @param warehouse The folder of tables that name no location.
 * @param allowed Further folders in which clients may name locations.
 */
export function createLocations(warehouse: Location, allowed: readonly Location[]): Locations {
  const roots = [warehouse, ...allowed];
  return {
    choose: (identifier) => {
      const folders = identifier.slice(0, -1).map(legible);
      const suffix = crypto.randomUUID().replaceAll("-", "").slice(0, 12);
      return childLocation(warehouse, ...folders, `${legible(identifier.at(-1) ?? "")}-${suffix}.lance`);
    },
    read: (text) => {
      const relative = !text.startsWith("/") && !text.includes("://");
      const location = parseLocation(relative ? `${warehouse.uri}/${encodeURI(text)}` : text);
      if (!roots.some((root) => contains(root, location) && root.uri !== location.uri))
        throw new CatalogError(
          "InvalidInput",
          `location: must be inside ${roots.map((root) => root.uri).join(" or ")}: ${JSON.stringify(text)}`,
        );
      return location;
    },
  };
}

/**
 * Makes sure that a table may be put at a location: two tables never share a folder, and
 * none lies in another's, so that dropping one never touches another.
 *
 * @param session Of a write that locks the tables: no constraint of the schema holds this rule.
 * @throws CatalogError TableAlreadyExists
 */
export async function requireFreeLocation(session: Session, location: Location): Promise<void> {
  if (session.locked !== "tables") throw new Error("a location is checked without locking the tables");
  if (await isLocationTaken(session, location.uri, ancestorUris(location)))
    throw new CatalogError(
      "TableAlreadyExists",
      `location: ${location.uri} overlaps with the location of another table, or of a dropped one that is still there`,
    );
}

/** The part of a name that is valid in a path of any store. */
function legible(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
}
