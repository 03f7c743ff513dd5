import type { Identifier } from "@tiltyard/protocol";
import { requireUnprotected } from "../domain/protection.ts";
import { forgetTable, markForPurge, softDeleteTable } from "../store/dropped-tables.ts";
import { deleteNamespace, listChildNamespaces, listNamespacesBelow } from "../store/namespaces.ts";
import type { Session } from "../store/store.ts";
import { findTable, listTables, type TableRecord } from "../store/tables.ts";
import { insertTask } from "../store/tasks.ts";
import { purgeOf } from "./purge.ts";

/** Returns whether a namespace has neither tables nor namespaces. */
export async function isEmpty(session: Session, namespace: Identifier): Promise<boolean> {
  const tables = await listTables(session, namespace, "", { limit: 1, includeDeclared: true });
  return tables.length === 0 && (await listChildNamespaces(session, namespace, "", 1)).length === 0;
}

/**
 * Drops a table: removes its name. A task purges its objects and records, at once or after the retention of a soft
 * delete. Until then, no other table can have its location.
 *
 * @throws CatalogError InvalidTableState for a table that is protected.
 */
export async function dropTable(session: Session, table: TableRecord, retentionMs: number): Promise<void> {
  requireUnprotected(table);
  if (retentionMs > 0) await softDeleteTable(session, table);
  else await markForPurge(session, table.id);
  await insertTask(session, purgeOf(table.id), retentionMs);
}

/**
 * Deregisters a table and keeps its objects. Its location is free at once; a task deletes its records.
 *
 * @throws CatalogError InvalidTableState for a table that is protected.
 */
export async function deregisterTable(session: Session, table: TableRecord): Promise<void> {
  requireUnprotected(table);
  const { id } = table;
  await forgetTable(session, id);
  await insertTask(session, { kind: "forget", subject: String(id) });
}

/** Drops all tables and namespaces below a namespace. @throws CatalogError InvalidTableState for a protected table. */
export async function dropContents(session: Session, namespace: Identifier, retentionMs: number): Promise<void> {
  const below = await listNamespacesBelow(session, namespace);
  for (const each of [...below, namespace]) {
    for (const name of await listTables(session, each, "", { limit: Number.MAX_SAFE_INTEGER, includeDeclared: true })) {
      const table = await findTable(session, [...each, name]);
      if (table !== undefined) await dropTable(session, table, retentionMs);
    }
    if (each !== namespace) await deleteNamespace(session, each);
  }
}
