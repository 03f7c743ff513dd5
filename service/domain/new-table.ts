import { type Identifier, isSystemTable } from "@tiltyard/protocol";
import type { Location } from "../storage/location.ts";
import type { Session } from "../store/store.ts";
import { insertTable, type TableRecord } from "../store/tables.ts";
import { claimLocation } from "./locations.ts";
import { applyPolicy, hasPolicy } from "./policy.ts";
import { requireFreeName } from "./require.ts";
import { type Caller, catalogCaller } from "./transaction.ts";

interface NewRecord {
  readonly identifier: Identifier;
  readonly location: Location;
  readonly properties: TableRecord["properties"];
}

/**
 * The policy of Geneva's records, which would grow without bound: each job commits about twenty versions. Their clients
 * read only the latest one.
 */
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
  { identifier, location, properties }: NewRecord,
  caller: Pick<Caller, "principal">,
  mayReclaim: (identifier: Identifier) => boolean = () => false,
): Promise<TableRecord> {
  await requireFreeName(session, identifier);
  await claimLocation(session, location, mayReclaim);
  const given = { identifier, location: location.uri, properties };
  if (!isSystemTable(identifier) || hasPolicy(properties))
    return applyPolicy(session, await insertTable(session, given), caller);
  const table = await insertTable(session, { ...given, properties: { ...properties, ...recordsPolicy } });
  return applyPolicy(session, table, catalogCaller);
}
