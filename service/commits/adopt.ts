import { z } from "zod";
import { findBranch } from "../store/branches.ts";
import { findDroppedTable } from "../store/dropped-tables.ts";
import { findTableById, type TableRecord } from "../store/tables.ts";
import { findVersion, latestVersion, type VersionRecord } from "../store/versions.ts";
import type { CommitDeps } from "./deps.ts";
import { type FoundManifest, filesOf, findNext, listManifests, untilGap, withoutLeftOvers } from "./discover.ts";
import { adoptBelow, adoptBranch, adoptNext } from "./record-adoption.ts";
import { rollBack } from "./withdraw.ts";

/** A branch of a table, which may have no versions. */
export interface TableBranch {
  readonly table: TableRecord;
  readonly branch: string;
}

/** The maximum number of versions that one request adopts before its response. */
const adoptedPerRequest = 5_000;

/**
 * Adopts versions that a writer placed in the table's folder without the catalog. Geneva's backfill commits columns
 * this way, and Spark and lance-ray commit whole tables. Without adoption, their versions are invisible, and a commit
 * through the catalog conflicts with them.
 *
 * A branch without records adopts all manifests of its folder; a branch with records adopts those that follow the
 * latest. A leftover manifest of an earlier generation of the branch is never adopted.
 *
 * @returns The latest version of the branch, which is placed; undefined if the branch has no version.
 * @throws CatalogError ServiceUnavailable, TableNotFound
 */
export async function catchUp(deps: CommitDeps, at: TableBranch): Promise<VersionRecord | undefined> {
  const { store, storage } = deps;
  for (;;) {
    const latest = await latestInPlace(deps, at);
    const state = await findBranch(store.read, at);
    const highest = state?.highestVersion;
    if (highest !== undefined && highest !== latest?.version) {
      const above = await findVersion(store.read, at, highest);
      if (above?.state === "condemned") {
        await rollBack(deps, above.transactionId);
        continue;
      }
      // A batch is committing this version.
      if (above !== undefined) return latest;
    }
    const files = await filesOf(storage, at, state);
    if (highest === undefined) {
      const found = await withoutLeftOvers(store.read, files, await listManifests(files));
      if (found.length === 0) return undefined;
      await adoptBranch(store, files, found, adoptedPerRequest);
    } else {
      const found = await findNext(files, highest, latest);
      const news = untilGap(highest, await withoutLeftOvers(store.read, files, found)).slice(0, adoptedPerRequest);
      if (news.length === 0) return latest;
      await adoptNext(store, files, news);
      if (news.length === adoptedPerRequest) return latestInPlace(deps, at);
    }
  }
}

/** Adopts the versions of a branch that `adoptBranch` deferred to a task. */
export async function adoptRest(deps: CommitDeps, subject: string): Promise<void> {
  const [id, branch] = z.tuple([z.int(), z.string()]).parse(JSON.parse(subject));
  // A dropped table can be undropped with all its versions.
  const table = (await findTableById(deps.store.read, id)) ?? (await findDroppedTable(deps.store.read, id));
  if (table === undefined) return;
  const at = { table, branch };
  const files = await filesOf(deps.storage, at, await findBranch(deps.store.read, at));
  const found = await withoutLeftOvers(deps.store.read, files, await listManifests(files));
  await adoptBelow(deps.store, files, found);
}

/** Adopts all branches of a newly registered table as part of that transaction. */
export async function adoptTable(
  deps: CommitDeps,
  table: TableRecord,
  branches: ReadonlyMap<string, readonly FoundManifest[]>,
  transactionId: string,
): Promise<void> {
  for (const [branch, found] of branches) {
    const files = { ...(await filesOf(deps.storage, { table, branch })), transactionId };
    await adoptBranch(deps.store, files, found);
  }
}

/** Places the latest version of a branch and returns it. @throws CatalogError ServiceUnavailable */
async function latestInPlace({ store, finishing }: CommitDeps, at: TableBranch): Promise<VersionRecord | undefined> {
  for (;;) {
    const record = await latestVersion(store.read, at);
    if (record === undefined) return undefined;
    const finished = await finishing.finish({ location: at.table.location, record });
    // After a withdrawal, the previous record is the latest.
    if (finished !== undefined) return finished;
  }
}
