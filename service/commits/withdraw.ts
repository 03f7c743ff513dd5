import { schemeOf } from "../lance/version-names.ts";
import { insertAuditOutcome } from "../store/audit.ts";
import { findBranch } from "../store/branches.ts";
import type { Store } from "../store/store.ts";
import { condemnVersions, listUnfinishedVersions, withdrawVersion } from "../store/unfinished-versions.ts";
import { isHidden, type LocatedVersion, type VersionRecord } from "../store/versions.ts";
import { exclusively, type Lease } from "../tasks/lease.ts";
import type { StoreDeps } from "./deps.ts";
import { findVersionFile, withoutLeftOvers } from "./discover.ts";
import { hasContentOf, keysOf } from "./place.ts";

const lost = "the manifest was deleted, or its name was in use, before the commit was finished";

/**
 * Withdraws a commit that was never acknowledged, because its manifest cannot be placed. Its number is free again.
 *
 * @returns False if the commit was finished meanwhile, no longer exists, or is not the latest version.
 */
export async function withdraw(store: Store, record: VersionRecord): Promise<boolean> {
  return store.write(async (session) => {
    const isWithdrawn = await withdrawVersion(session, record);
    if (isWithdrawn) await insertAuditOutcome(session, record.transactionId, "Failed", lost);
    return isWithdrawn;
  });
}

/**
 * Rolls back a batch before its commit point. The first write prevents its publication by other processes. One request at
 * a time does it, because a retry of a commit may follow, with the same manifests.
 *
 * @throws CatalogError ServiceUnavailable
 */
export async function rollBack({ store, storage }: StoreDeps, transactionId: string): Promise<void> {
  await exclusively(store, `rollback of ${transactionId}`, async (lease) => {
    await store.write((session) => condemnVersions(session, transactionId));
    const left = await listUnfinishedVersions(store.read, transactionId);
    const condemned = left.filter(({ record }) => isHidden(record));
    for (const each of condemned) await removePlaced({ store, storage }, each, lease);
    await store.write(async (session) => {
      for (const { record } of condemned) await withdrawVersion(session, record);
    });
  });
}

/** Deletes a final name unless a writer outside the catalog has built the next version on it. */
async function removePlaced({ store, storage }: StoreDeps, located: LocatedVersion, lease: Lease): Promise<void> {
  const { location, record } = located;
  const objects = await storage.at(location);
  const { folder, staged, final } = keysOf(located);
  // A client placed this manifest itself.
  if (staged === final) return;
  const there = await objects.find(final);
  if (there === undefined || !(await hasContentOf(objects, located, final, there))) return;
  const table = { id: record.tableId, location };
  const state = await findBranch(store.read, { table, branch: record.branch });
  // All versions of an earlier generation were deleted, so none is built on this one.
  if (state?.generation === record.generation) {
    const files = { table, branch: record.branch, state, folder, objects };
    const next = await findVersionFile(files, record.version + 1, schemeOf(record.manifestName));
    if (next !== undefined && (await withoutLeftOvers(store.read, files, [next])).length > 0) return;
  }
  lease.requireValid();
  await objects.delete(final, there);
}
