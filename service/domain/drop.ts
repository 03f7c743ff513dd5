import type { Identifier } from "@tiltyard/protocol";
import { deleteNamespace, listChildNamespaces, listNamespacesBelow } from "../store/namespaces.ts";
import type { Session } from "../store/store.ts";
import { deleteTable, findTable, insertPendingDeletion, listTables, type TableRecord } from "../store/tables.ts";

/** Whether a namespace holds neither a table nor a namespace. */
export async function isEmpty(session: Session, namespace: Identifier): Promise<boolean> {
  const tables = await listTables(session, namespace, "", { limit: 1, includeDeclared: true });
  return tables.length === 0 && (await listChildNamespaces(session, namespace, "", 1)).length === 0;
}

/**
 * Drops a table from the catalog and notes that its objects are to be deleted, which is
 * the finisher's work once this is committed.
 */
export async function dropRecords(session: Session, table: TableRecord): Promise<void> {
  await deleteTable(session, table.id);
  await insertPendingDeletion(session, table.location);
}

/** Drops all that a namespace holds. @returns The locations of the dropped tables. */
export async function dropContents(session: Session, namespace: Identifier): Promise<string[]> {
  const locations: string[] = [];
  const below = await listNamespacesBelow(session, namespace);
  for (const each of [...below, namespace]) {
    for (const name of await listTables(session, each, "", { limit: Number.MAX_SAFE_INTEGER, includeDeclared: true })) {
      const table = await findTable(session, [...each, name]);
      if (table === undefined) continue;
      await dropRecords(session, table);
      locations.push(table.location);
    }
    if (each !== namespace) await deleteNamespace(session, each);
  }
  return locations;
}
