import { CatalogError, type Identifier, isSystemTable } from "@tiltyard/protocol";
import { applyPolicy, policyProperties } from "../domain/policy.ts";
import { requireFreeName } from "../domain/require.ts";
import { type Caller, catalogOrigin } from "../domain/transaction.ts";
import type { Location } from "../storage/location.ts";
import { findReservedLocation, releaseLocation } from "../store/reserved-locations.ts";
import type { Session } from "../store/store.ts";
import { insertTable, isLocationTaken, type NewTable, type TableRecord } from "../store/tables.ts";

/** The policy of Geneva's records, to which each job commits about twenty versions. Clients read the latest. */
const recordsPolicy = {
  auto_compact: JSON.stringify({ small_fragments: 50 }),
  auto_clean_up: JSON.stringify({ versions: 100, older_than_seconds: 3_600 }),
};

/**
 * Records a table whose name and location are free, and registers the automations of its policy.
 *
 * @param session The session of a write that locks the tables.
 * @param mayReclaim Reports whether the caller may write the deregistered table that had this name at the location.
 * @throws CatalogError NamespaceNotFound, TableAlreadyExists; InvalidInput for an invalid policy.
 */
export async function recordTable(
  session: Session,
  table: NewTable,
  caller: Pick<Caller, "principal">,
  mayReclaim: (identifier: Identifier) => boolean = () => false,
): Promise<TableRecord> {
  const { identifier, location, properties } = table;
  await requireFreeName(session, identifier);
  await claimLocation(session, location, mayReclaim);
  if (!isSystemTable(identifier) || policyProperties.some((name) => properties[name] !== undefined))
    return applyPolicy(session, await insertTable(session, table), caller);
  const records = { ...table, properties: { ...properties, ...recordsPolicy } };
  return applyPolicy(session, await insertTable(session, records), catalogOrigin);
}

/**
 * Requires that a table may have a location or a base. No two tables share a folder, and no folder contains another, so
 * that dropping one table never affects another. The location of a deregistered table, or a base of a dropped one, whose
 * objects remain, is available for a table at exactly the same location.
 *
 * @param session The session of a write that locks the tables, because no constraint of the schema enforces this rule.
 * @param mayReclaim Reports whether the caller may write the deregistered table with this name.
 * @throws CatalogError TableAlreadyExists
 */
export async function claimLocation(
  session: Session,
  location: Location,
  mayReclaim: (identifier: Identifier) => boolean,
) {
  if (session.locked !== "tables") throw new Error("a location is checked without locking the tables");
  const reserved = await findReservedLocation(session, location);
  const isFormer = reserved?.location.uri === location.uri && reserved.tableId === undefined;
  const isReclaimed = isFormer && mayReclaim(reserved.identifier);
  if ((reserved !== undefined && !isReclaimed) || (await isLocationTaken(session, location)))
    throw new CatalogError(
      "TableAlreadyExists",
      `location: ${location.uri} overlaps with the location or a base of another table, or of a dropped or deregistered one whose files still exist`,
    );
  if (isReclaimed) await releaseLocation(session, location);
}
