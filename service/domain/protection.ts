import { CatalogError, formatIdentifier, type Identifier, managementContracts } from "@tiltyard/protocol";
import type { Session } from "../store/store.ts";
import { setTableProperties, type TableRecord } from "../store/tables.ts";
import { requireTable } from "./require.ts";
import { type Origin, recordAudit } from "./transaction.ts";

/** The property that protects a table from being dropped while its value is `true`. */
const protection = "protected";

/** A text that the properties of every protected table contain, and of few others. */
export const protectedText = `"${protection}":"true"`;

/** Returns the new properties of a table with its current protection. */
export function withProtectionOf(
  table: Pick<TableRecord, "properties">,
  properties: TableRecord["properties"],
): TableRecord["properties"] {
  return isProtected(table) ? { ...properties, [protection]: "true" } : properties;
}

function isProtected({ properties }: Pick<TableRecord, "properties">): boolean {
  return properties[protection] === "true";
}

/** Requires that a table is not protected. @throws CatalogError InvalidTableState */
export function requireUnprotected(table: TableRecord): void {
  if (isProtected(table))
    throw new CatalogError(
      "InvalidTableState",
      `table ${formatIdentifier(table.identifier)} is protected: an admin of it can allow this with ` +
        `UnprotectTable, the operator with tiltyard-catalog tables unprotect`,
    );
}

/**
 * Protects a table from being dropped, or removes the protection.
 *
 * @returns The name of the transaction.
 * @throws CatalogError TableNotFound
 */
export async function setProtected(
  session: Session,
  origin: Origin,
  identifier: Identifier,
  protect: boolean,
): Promise<string> {
  const table = await requireTable(session, identifier);
  const { [protection]: _, ...others } = table.properties;
  await setTableProperties(session, table.id, protect ? { ...others, [protection]: "true" } : others);
  const contract = protect ? managementContracts.protectTable : managementContracts.unprotectTable;
  return recordAudit(session, { ...origin, contract, objects: [identifier] });
}
