import { parseLocation } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import { noteTime } from "../store/clock.ts";
import { findDroppedTable, findTableToPurge, markForPurge } from "../store/dropped-tables.ts";
import type { Store } from "../store/store.ts";
import { deleteTable } from "../store/tables.ts";
import { deleteSomeVersions } from "../store/version-ranges.ts";
import type { Lease } from "../tasks/lease.ts";

/** The number of records that one database transaction deletes within some milliseconds. */
const deletedAtOnce = 1_000;

/** Returns the task that purges a dropped table. */
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
  parts: { readonly store: Store; readonly storage: Storage; readonly dropRetentionMs: number },
  subject: string,
  lease: Lease,
): Promise<number | undefined> {
  const { store, storage, dropRetentionMs } = parts;
  const id = Number(subject);
  const waitMs = await store.write(async (session) => {
    await noteTime(session);
    const dropped = await findDroppedTable(session, id);
    if (dropped === undefined) return 0;
    const keptForMs = dropped.droppedAtMillis + dropRetentionMs - Date.now();
    if (keptForMs <= 0) await markForPurge(session, id);
    return keptForMs;
  });
  if (waitMs > 0) return waitMs;
  const location = await findTableToPurge(store.read, id);
  // The table was undropped, or another process has purged it.
  if (location === undefined) return undefined;
  const { path } = parseLocation(location);
  await (await storage.at(parseLocation(location))).deleteFolder(path, lease.requireValid);
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
