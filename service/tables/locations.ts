import { hash } from "node:crypto";
import { CatalogError, formatIdentifier, type Identifier, isWithin } from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import { isAllowed } from "../auth/authorize.ts";
import { childLocation, contains, type Location, parseLocation } from "../storage/location.ts";

/** A folder for the tables of a namespace and everything below it. */
export interface AllowedLocation {
  readonly namespace: Identifier;
  readonly location: Location;
}

export type Locations = ReturnType<typeof createLocations>;

/** @param assigned The folders outside the warehouse in which clients may request locations. */
export function createLocations(warehouse: Location, assigned: readonly AllowedLocation[]) {
  const roots = [warehouse, ...assigned.map(({ location }) => location)];
  const folderOf = (namespace: Identifier) => childLocation(warehouse, ...namespace.map(folderName));
  const choose = (identifier: Identifier): Location => {
    const suffix = crypto.randomUUID().replaceAll("-", "").slice(0, 12);
    const name = `${legible(identifier.at(-1) ?? "")}-${suffix}.lance`;
    return childLocation(folderOf(identifier.slice(0, -1)), name);
  };
  return {
    /** Chooses a new location for a table, in the folder of its namespace in the warehouse. */
    choose,
    /**
     * Parses a location that a client requests for a table: an absolute one, or a path inside the warehouse. Chooses one
     * if the client requests none.
     *
     * Administrators of the root may use all folders that the operator allows. Other callers may use the folder of the
     * table's namespace, and the folders that are assigned to it or to an ancestor of which they are writers.
     *
     * @throws CatalogError InvalidInput outside the folders that the operator allows; PermissionDenied outside the
     * caller's folders.
     */
    requested: (text: string | undefined, identifier: Identifier, principal: Principal): Location => {
      if (text === undefined) return choose(identifier);
      const relative = !text.startsWith("/") && !text.includes("://");
      const location = parseLocation(relative ? `${warehouse.uri}/${encodeURI(text)}` : text);
      if (!roots.some((root) => isInside(root, location)))
        throw new CatalogError(
          "InvalidInput",
          `location: must be inside ${roots.map((root) => root.uri).join(" or ")}: ${JSON.stringify(text)}`,
        );
      if (isAllowed(principal, { role: "admin", object: [] })) return location;
      const namespace = identifier.slice(0, -1);
      const folders = [{ namespace, location: folderOf(namespace) }, ...assigned].filter(
        (each) =>
          isWithin(namespace, each.namespace) && isAllowed(principal, { role: "writer", object: each.namespace }),
      );
      if (folders.some((each) => isInside(each.location, location))) return location;
      const allowed = folders.map((each) => each.location.uri).join(" or ") || "a folder of its own namespace";
      throw new CatalogError(
        "PermissionDenied",
        `location: ${principal.name} may only create tables of ${formatIdentifier(namespace)} in ${allowed}: ${JSON.stringify(text)}`,
      );
    },
  };
}

function isInside(folder: Location, location: Location): boolean {
  return folder.uri !== location.uri && contains(folder, location);
}

/** Returns the folder of a namespace, which is unique: a name that is invalid in a path is followed by a dot and a hash. */
function folderName(name: string): string {
  const text = legible(name);
  return text === name ? name : `${text}.${hash("sha256", name).slice(0, 12)}`;
}

function legible(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
}
