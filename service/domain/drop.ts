import { isDeepStrictEqual } from "node:util";
import { CatalogError, formatIdentifier, type Identifier, managementContracts } from "@tiltyard/protocol";
import { buryTable, findBuriedTable, findDroppedTable, hideTable, showTable } from "../store/dropped-tables.ts";
import { deleteNamespace, listChildNamespaces, listNamespacesBelow } from "../store/namespaces.ts";
import type { Session, Store } from "../store/store.ts";
import {
  deletePendingDeletion,
  deleteTable,
  findTable,
  insertPendingDeletion,
  listTables,
  setTableProperties,
  type TableRecord,
} from "../store/tables.ts";
import { listBranchNames } from "../store/versions.ts";
import { prepareAudit } from "./audit.ts";
import { requireFreeName, requireTable } from "./require.ts";
import type { By } from "./transaction.ts";
import { deleteFirstOf } from "./version-ranges.ts";

/** The property that keeps a table from being dropped while it is `true`. */
const protection = "protected";
/** The database counts tables in 32 bits. */
const tableIdMax = 2 ** 31 - 1;

/** New properties for a table: who sets them does not take its protection away. */
export function withProtectionOf(
  table: Pick<TableRecord, "properties">,
  properties: TableRecord["properties"],
): TableRecord["properties"] {
  return isProtected(table) ? { ...properties, [protection]: "true" } : properties;
}

function isProtected({ properties }: Pick<TableRecord, "properties">): boolean {
  return properties[protection] === "true";
}

/** @throws CatalogError InvalidTableState for a table that is protected. */
export function requireUnprotected(table: TableRecord): void {
  if (isProtected(table))
    throw new CatalogError(
      "InvalidTableState",
      `table ${formatIdentifier(table.identifier)} is protected: an admin of it can allow this with ` +
        `UnprotectTable, the operator with tiltyard-catalog tables unprotect`,
    );
}

/** Whether a namespace holds neither a table nor a namespace. */
export async function isEmpty(session: Session, namespace: Identifier): Promise<boolean> {
  const tables = await listTables(session, namespace, "", { limit: 1, includeDeclared: true });
  return tables.length === 0 && (await listChildNamespaces(session, namespace, "", 1)).length === 0;
}

/**
 * Drops a table. Without a retention it is gone for good, and its location is noted, so that
 * the finisher deletes its records and its objects once this is committed. With one the table
 * loses its name only, and the finisher does all that when the time is over.
 *
 * @returns The location whose objects are to be deleted now; undefined when it is kept.
 * @throws CatalogError InvalidTableState for a table that is protected.
 */
export async function dropTableRecords(
  session: Session,
  table: TableRecord,
  retentionMs: number,
): Promise<string | undefined> {
  requireUnprotected(table);
  if (retentionMs > 0) {
    await hideTable(session, table);
    return undefined;
  }
  await buryTable(session, table.id);
  await insertPendingDeletion(session, table.location);
  return table.location;
}

/**
 * Deletes what a table that was dropped for good has left behind: first its records, some at
 * a time, so that others need not wait, then its objects. Broken off, it goes on where it was
 * when it is called again.
 */
export async function deleteRemains(store: Store, location: string, deleteObjects: () => Promise<void>): Promise<void> {
  const id = await findBuriedTable(store.read, location);
  if (id !== undefined)
    for (const branch of await listBranchNames(store.read, id)) {
      const everything = [{ start: 0, end: undefined }];
      while ((await store.write((session) => deleteFirstOf(session, id, branch, everything))) > 0);
    }
  await deleteObjects();
  await store.write(async (session) => {
    if (id !== undefined) await deleteTable(session, id);
    await deletePendingDeletion(session, location);
  });
}

/**
 * Drops all that a namespace holds.
 *
 * @returns The locations whose objects are to be deleted now.
 * @throws CatalogError InvalidTableState when a table in it is protected.
 */
export async function dropContents(session: Session, namespace: Identifier, retentionMs: number): Promise<string[]> {
  const locations: string[] = [];
  const below = await listNamespacesBelow(session, namespace);
  for (const each of [...below, namespace]) {
    for (const name of await listTables(session, each, "", { limit: Number.MAX_SAFE_INTEGER, includeDeclared: true })) {
      const table = await findTable(session, [...each, name]);
      const location = table && (await dropTableRecords(session, table, retentionMs));
      if (location !== undefined) locations.push(location);
    }
    if (each !== namespace) await deleteNamespace(session, each);
  }
  return locations;
}

/**
 * Drops a table for good that was kept until a time, unless it was brought back meanwhile or
 * another replica was faster.
 *
 * @returns The location whose objects are to be deleted now.
 */
export async function dropForGood(session: Session, id: number, beforeMillis: number): Promise<string | undefined> {
  const dropped = await findDroppedTable(session, id);
  if (dropped === undefined || dropped.droppedAtMillis > beforeMillis) return undefined;
  await buryTable(session, id);
  await insertPendingDeletion(session, dropped.location);
  return dropped.location;
}

/**
 * Brings a dropped table back.
 *
 * @param dropped Its id; with what it was called, when the caller's rights were told from that.
 * @param to What to call it; what it was called when undefined.
 * @returns What it is called, and the name of the transaction.
 * @throws CatalogError TableNotFound, NamespaceNotFound, TableAlreadyExists
 */
export async function undropTable(
  session: Session,
  by: By,
  dropped: { readonly id: number; readonly identifier?: Identifier },
  to: Identifier | undefined,
): Promise<{ readonly identifier: Identifier; readonly transaction: string }> {
  const found =
    Number.isInteger(dropped.id) && dropped.id > 0 && dropped.id <= tableIdMax
      ? await findDroppedTable(session, dropped.id)
      : undefined;
  const { identifier: expected = found?.identifier } = dropped;
  // Part by part: the parts of two names may give the same text when they are joined.
  if (found === undefined || !isDeepStrictEqual(expected, found.identifier))
    throw new CatalogError("TableNotFound", "no dropped table has this id and name; see the list of dropped tables");
  const identifier = to ?? found.identifier;
  await requireFreeName(session, identifier);
  await showTable(session, found.id, identifier);
  const transaction = prepareAudit({ ...by, contract: managementContracts.undropTable, objects: [identifier] });
  await transaction.record(session);
  return { identifier, transaction: transaction.name };
}

/**
 * Protects a table from being dropped, or does so no more.
 *
 * @returns The name of the transaction.
 * @throws CatalogError TableNotFound
 */
export async function setProtected(
  session: Session,
  by: By,
  identifier: Identifier,
  protect: boolean,
): Promise<string> {
  const table = await requireTable(session, identifier);
  const { [protection]: _, ...others } = table.properties;
  await setTableProperties(session, table.id, protect ? { ...others, [protection]: "true" } : others);
  const contract = protect ? managementContracts.protectTable : managementContracts.unprotectTable;
  const transaction = prepareAudit({ ...by, contract, objects: [identifier] });
  await transaction.record(session);
  return transaction.name;
}
