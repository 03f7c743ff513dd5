import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import type { Storage } from "../storage/storage.ts";
import { expiryOf, noteTime } from "../store/clock.ts";
import {
  findDroppedTable,
  findTableToPurge,
  forgetTable,
  markForPurge,
  softDeleteTable,
} from "../store/dropped-tables.ts";
import { listFunctions } from "../store/functions.ts";
import { deleteNamespace, listChildNamespaces, listNamespacesBelow } from "../store/namespaces.ts";
import { reserveLocation } from "../store/reserved-locations.ts";
import { listSecrets } from "../store/secrets.ts";
import type { Session, Store } from "../store/store.ts";
import {
  deleteTable,
  findProtectedTable,
  findTable,
  isProtected,
  listTables,
  type TableRecord,
} from "../store/tables.ts";
import { insertTask } from "../store/tasks.ts";
import { deleteSomeVersions } from "../store/versions.ts";
import type { Lease } from "../tasks/lease.ts";

/** Reports whether a namespace contains no tables, Functions, secrets and namespaces. */
export async function isEmpty(session: Session, namespace: Identifier): Promise<boolean> {
  const tables = await listTables(session, namespace, "", { limit: 1, includeDeclared: true });
  if (tables.length > 0 || (await listFunctions(session, namespace, { limit: 1 })).length > 0) return false;
  if ((await listSecrets(session, namespace, "", 1)).length > 0) return false;
  return (await listChildNamespaces(session, namespace, "", 1)).length === 0;
}

function protectedError(identifier: Identifier): CatalogError {
  return new CatalogError(
    "InvalidTableState",
    `table ${formatIdentifier(identifier)} is protected: an admin of it can allow this with UnprotectTable`,
  );
}

/**
 * Drops a table by removing its name. A task purges its objects and records, either at once or after the retention of a
 * soft delete. Until then, no other table can have its location.
 *
 * @throws CatalogError InvalidTableState if the table is protected.
 */
export async function dropTable(session: Session, table: TableRecord, retentionMs: number): Promise<void> {
  if (isProtected(table)) throw protectedError(table.identifier);
  if (retentionMs > 0) await softDeleteTable(session, table);
  else await markForPurge(session, table.id);
  await insertTask(session, purgeOf(table.id), retentionMs);
}

/** Deregisters a table and reserves its location. @throws CatalogError InvalidTableState if it is protected. */
export async function deregisterTable(session: Session, table: TableRecord): Promise<void> {
  if (isProtected(table)) throw protectedError(table.identifier);
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
  const found = await findProtectedTable(store.read, namespace);
  if (found !== undefined) throw protectedError(found);
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

/** The number of records that one database transaction deletes within some milliseconds. */
const deletedAtOnce = 1_000;

export function purgeOf(tableId: number) {
  return { kind: "purge", subject: String(tableId) } as const;
}

/**
 * Purges the objects of a dropped table and then, in batches, its records, which frees its location. The purge is
 * idempotent: after an interruption, the next call continues.
 *
 * @returns The remaining retention in milliseconds if the table can still be undropped.
 */
export async function purgeTable(
  deps: { readonly store: Store; readonly storage: Storage; readonly dropRetentionMs: number },
  subject: string,
  lease: Lease,
): Promise<number | undefined> {
  const { store, storage, dropRetentionMs } = deps;
  const id = Number(subject);
  const waitMs = await store.write(async (session) => {
    await noteTime(session);
    const dropped = await findDroppedTable(session, id);
    if (dropped === undefined) return 0;
    const keptForMs = dropped.droppedAtMillis - (await expiryOf(session, dropRetentionMs));
    if (keptForMs <= 0) await markForPurge(session, id);
    return keptForMs;
  });
  if (waitMs > 0) return waitMs;
  const location = await findTableToPurge(store.read, id);
  // The table was undropped, or another process has purged it.
  if (location === undefined) return undefined;
  await (await storage.at(location)).deleteFolder(location.path, lease.requireValid);
  await forgetRecords(store, id, lease);
  return undefined;
}

/** Deletes the records of a table without a name and objects, in batches. */
export async function forgetRecords(store: Store, tableId: number, lease: Lease): Promise<void> {
  for (let isMore = true; isMore; ) {
    lease.requireValid();
    isMore = await store.write((session) => deleteSomeVersions(session, tableId, deletedAtOnce));
  }
  lease.requireValid();
  await store.write((session) => deleteTable(session, tableId));
}
