import type { Identifier } from "@tiltyard/protocol";
import { protectedText, requireUnprotected } from "../domain/protection.ts";
import { forgetTable, markForPurge, softDeleteTable } from "../store/dropped-tables.ts";
import { deleteNamespace, listChildNamespaces, listNamespacesBelow } from "../store/namespaces.ts";
import { reserveLocation } from "../store/reserved-locations.ts";
import type { Session, Store } from "../store/store.ts";
import { findTable, listTables, listTablesWith, type TableRecord } from "../store/tables.ts";
import { insertTask } from "../store/tasks.ts";
import { purgeOf } from "./purge.ts";

/** Reports whether a namespace contains neither tables nor namespaces. */
export async function isEmpty(session: Session, namespace: Identifier): Promise<boolean> {
  const tables = await listTables(session, namespace, "", { limit: 1, includeDeclared: true });
  return tables.length === 0 && (await listChildNamespaces(session, namespace, "", 1)).length === 0;
}

/**
 * Drops a table by removing its name. A task purges its objects and records, either at once or after the retention of a
 * soft delete. Until then, no other table can have its location.
 *
 * @throws CatalogError InvalidTableState if the table is protected.
 */
export async function dropTable(session: Session, table: TableRecord, retentionMs: number): Promise<void> {
  requireUnprotected(table);
  if (retentionMs > 0) await softDeleteTable(session, table);
  else await markForPurge(session, table.id);
  await insertTask(session, purgeOf(table.id), retentionMs);
}

/**
 * Deregisters a table without changing its objects. Its location stays reserved, and a task deletes its records.
 *
 * @throws CatalogError InvalidTableState if the table is protected.
 */
export async function deregisterTable(session: Session, table: TableRecord): Promise<void> {
  requireUnprotected(table);
  const { id } = table;
  await reserveLocation(session, table);
  await forgetTable(session, id);
  await insertTask(session, { kind: "forget", subject: String(id) });
}

/** The number of tables and namespaces that one database transaction drops within some milliseconds. */
const droppedAtOnce = 200;

/**
 * Drops everything in a namespace in several database transactions, so that other requests wait only briefly. A
 * protected table prevents the drop before anything is dropped.
 *
 * @param finish Runs in the last transaction, in which the namespace is empty.
 * @throws CatalogError InvalidTableState if a table in the namespace is protected.
 */
export async function dropContents(
  store: Store,
  namespace: Identifier,
  retentionMs: number,
  finish: (session: Session) => Promise<void>,
): Promise<void> {
  for (const table of await listTablesWith(store.read, namespace, protectedText)) requireUnprotected(table);
  const dropSome = async (session: Session): Promise<boolean> => {
    let left = droppedAtOnce;
    for (const each of [...(await listNamespacesBelow(session, namespace, left)), namespace]) {
      const names = await listTables(session, each, "", { limit: left, includeDeclared: true });
      for (const name of names) {
        const table = await findTable(session, [...each, name]);
        if (table !== undefined) await dropTable(session, table, retentionMs);
      }
      left -= names.length + 1;
      if (left <= 0) return false;
      if (each !== namespace) await deleteNamespace(session, each);
    }
    await finish(session);
    return true;
  };
  // Other requests would otherwise create tables meanwhile, and the namespace would not be empty.
  while (!(await store.write(dropSome, { locking: "tables" })));
}
