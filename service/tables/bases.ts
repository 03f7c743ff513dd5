import { CatalogError, hasKind, type Identifier } from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import { withRole } from "../auth/authorize.ts";
import { tableNotFound } from "../domain/require.ts";
import { childLocation, type Location } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import { reserveLocation } from "../store/reserved-locations.ts";
import type { Session, Store } from "../store/store.ts";
import { findOwner, holdTable, type TableRecord } from "../store/tables.ts";
import type { Locations } from "./locations.ts";
import { claimLocation } from "./new-table.ts";

/** The maximum number of bases that one request adds. */
const claimedMax = 100;

interface Claim {
  readonly locations: Locations;
  readonly table: TableRecord;
  readonly principal: Principal;
}

/**
 * Reserves the folders outside a table that a version has files in as bases of the table, in its own database transaction.
 * The claim remains if the version is not committed.
 *
 * @throws CatalogError TableNotFound; InvalidInput, like `claimBases`
 */
export async function claimBasesOfVersion(
  { store, storage }: { readonly store: Store; readonly storage: Storage },
  claim: Claim,
  bases: readonly Location[],
): Promise<void> {
  const owned = await Promise.all(
    bases.map((base) => isReadable(store.read, base, withRole(claim.principal, "reader"))),
  );
  if (owned.every(Boolean)) return;
  await requireNoLinks(storage, bases);
  const work = async (session: Session) => {
    // Bases follow a rename or a drop of their table only if they are claimed before it.
    if (!(await holdTable(session, claim.table))) throw tableNotFound(claim.table.identifier);
    await claimBases(session, claim, bases);
  };
  await store.write(work, { locking: "tables" });
}

/**
 * Reserves the folders outside a table that its versions have files in as bases of the table, except those of tables that the
 * caller may read, as a shallow clone has. The rules are those of a location of the table.
 *
 * @param session The session of a write that locks the tables.
 * @throws CatalogError InvalidInput
 */
export async function claimBases(session: Session, { locations, table, principal }: Claim, bases: readonly Location[]) {
  const { id: tableId, identifier, location } = table;
  const mayWrite = withRole(principal, "writer");
  let claimed = 0;
  for (const base of bases) {
    if (await isReadable(session, base, withRole(principal, "reader"))) continue;
    claimed += 1;
    try {
      if (claimed > claimedMax) throw invalid(`a request adds at most ${claimedMax} bases`);
      if (base.scheme !== location.scheme) throw invalid(`the table is at ${location.uri}`);
      locations.requested(base.uri, identifier, principal);
      await claimLocation(session, base, mayWrite);
    } catch (cause) {
      throw cause instanceof CatalogError ? invalidBase(base, cause) : cause;
    }
    await reserveLocation(session, { location: base, identifier, tableId });
  }
}

/**
 * Reports whether a folder belongs to a table that the caller may read.
 *
 * @param mayRead Reports whether the caller may read the table with this name.
 */
export async function isReadable(session: Session, folder: Location, mayRead: (table: Identifier) => boolean) {
  const owner = await findOwner(session, folder);
  return owner !== undefined && mayRead(owner);
}

/** Requires that no folder is a symbolic link to another one. @throws CatalogError InvalidInput */
export async function requireNoLinks(storage: Storage, bases: readonly Location[]): Promise<void> {
  // Only local folders can be links, and a client must not choose a bucket that the catalog reads.
  for (const base of bases.filter(({ scheme }) => scheme === "file")) {
    const objects = await storage.at(base);
    // The store checks the links of each path that it reads.
    await objects.read(childLocation(base, "_links").path).catch((cause) => {
      throw hasKind(cause, "InvalidTableState") ? invalidBase(base, cause) : cause;
    });
  }
}

function invalid(message: string, cause?: CatalogError): CatalogError {
  return new CatalogError("InvalidInput", message, { cause });
}

function invalidBase({ uri }: Location, cause: CatalogError): CatalogError {
  return invalid(`${uri} cannot be a base of the table: ${cause.message}`, cause);
}
