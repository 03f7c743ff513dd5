import { randomUUIDv7 } from "node:crypto";
import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { findDroppedTable, hideTable, showTable } from "../store/dropped-tables.ts";
import { deleteNamespace, listChildNamespaces, listNamespacesBelow } from "../store/namespaces.ts";
import type { Session } from "../store/store.ts";
import {
  deleteTable,
  findTable,
  insertPendingDeletion,
  listTables,
  setTableProperties,
  type TableRecord,
} from "../store/tables.ts";
import { insertTransaction } from "../store/transactions.ts";
import { requireFreeName, requireTable } from "./require.ts";

/** The property that keeps a table from being dropped while it is `true`. */
const protection = "protected";
/** Whom the audit names for what is done at the command line. */
const operator = "operator";

/** Whether a namespace holds neither a table nor a namespace. */
export async function isEmpty(session: Session, namespace: Identifier): Promise<boolean> {
  const tables = await listTables(session, namespace, "", { limit: 1, includeDeclared: true });
  return tables.length === 0 && (await listChildNamespaces(session, namespace, "", 1)).length === 0;
}

/**
 * Drops a table. Without a retention its records go, and its location is noted, so that the
 * finisher deletes its objects once this is committed. With one the table loses its name
 * only, and the finisher does all that when the time is over.
 *
 * @returns The location whose objects are to be deleted now; undefined when it is kept.
 * @throws CatalogError InvalidTableState for a table that is protected.
 */
export async function dropTableRecords(
  session: Session,
  table: TableRecord,
  retentionMs: number,
): Promise<string | undefined> {
  if (table.properties[protection] === "true")
    throw new CatalogError(
      "InvalidTableState",
      `table ${formatIdentifier(table.identifier)} is protected: its operator can allow to drop it with ` +
        `tiltyard-catalog tables unprotect`,
    );
  if (retentionMs > 0) {
    await hideTable(session, table);
    return undefined;
  }
  await deleteTable(session, table.id);
  await insertPendingDeletion(session, table.location);
  return table.location;
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
  await deleteTable(session, id);
  await insertPendingDeletion(session, dropped.location);
  return dropped.location;
}

/**
 * Brings a dropped table back.
 *
 * @param to What to call it; what it was called when undefined.
 * @returns What it is called.
 * @throws CatalogError TableNotFound, NamespaceNotFound, TableAlreadyExists
 */
export async function undropTable(session: Session, id: number, to: Identifier | undefined): Promise<Identifier> {
  const dropped = Number.isSafeInteger(id) ? await findDroppedTable(session, id) : undefined;
  if (dropped === undefined)
    throw new CatalogError("TableNotFound", "no dropped table has this id; see: tiltyard-catalog tables dropped");
  const identifier = to ?? dropped.identifier;
  await requireFreeName(session, identifier);
  await showTable(session, id, identifier);
  await recordByOperator(session, "UndropTable", identifier);
  return identifier;
}

/** Protects a table from being dropped, or does so no more. @throws CatalogError TableNotFound */
export async function setProtected(session: Session, identifier: Identifier, isProtected: boolean): Promise<void> {
  const table = await requireTable(session, identifier);
  const { [protection]: _, ...others } = table.properties;
  await setTableProperties(session, table.id, isProtected ? { ...others, [protection]: "true" } : others);
  await recordByOperator(session, isProtected ? "ProtectTable" : "UnprotectTable", identifier);
}

function recordByOperator(session: Session, operation: string, identifier: Identifier): Promise<void> {
  return insertTransaction(session, {
    id: randomUUIDv7(),
    namespace: identifier.slice(0, -1),
    operation,
    objects: [identifier],
    principal: operator,
    requestId: "",
    status: "Succeeded",
    properties: {},
  });
}
