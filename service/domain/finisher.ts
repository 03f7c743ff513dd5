import type { Log } from "../log.ts";
import { parseLocation } from "../storage/location.ts";
import type { ObjectStore, StoredObject } from "../storage/object-store.ts";
import type { Storage } from "../storage/storage.ts";
import { listDroppedTables } from "../store/dropped-tables.ts";
import type { Session, Store } from "../store/store.ts";
import { deletePendingDeletion, isDeletionPending, listPendingDeletions } from "../store/tables.ts";
import { failTransaction } from "../store/transactions.ts";
import {
  finishVersion,
  listUnfinishedVersions,
  type VersionRecord,
  versionBefore,
  withdrawVersion,
} from "../store/versions.ts";
import { dropForGood } from "./drop.ts";
import { versionsFolder } from "./manifest.ts";

/** How many records or locations one sweep takes up. */
const sweepBatch = 1000;
const lost = "the manifest was deleted, or its name was taken, before the commit was finished";

/**
 * Does in the object store what was decided in the database: gives committed manifests
 * their final names, and deletes the objects of dropped tables. What is done here may be
 * repeated or break off at any point; the database says until the end that it is to be done.
 */
export interface Finisher {
  /**
   * Copies a staged manifest to its final name, deletes the staged one, and notes it.
   * Never throws: a record that cannot be finished now is answered as it is.
   *
   * @returns undefined when the version turned out to be none and its record was withdrawn.
   */
  finishVersion(location: string, record: VersionRecord): Promise<VersionRecord | undefined>;
  /** Deletes the objects at the location of a dropped table. Never throws: what fails is left to the sweep. */
  deleteObjects(location: string): Promise<void>;
  /** Takes up everything that is left to be done. */
  sweep(): Promise<void>;
}

export interface FinisherParts {
  readonly store: Store;
  readonly storage: Storage;
  readonly log: Log;
  /** How long dropped tables are kept. */
  readonly dropRetentionMs: number;
}

export function createFinisher({ store, storage, log, dropRetentionMs }: FinisherParts): Finisher {
  /** Readers of a version that is just being committed wait for the same work. */
  const underWay = new Map<string, Promise<VersionRecord | undefined>>();

  async function finish(uri: string, record: VersionRecord): Promise<VersionRecord | undefined> {
    const location = parseLocation(uri);
    const folder = versionsFolder(location, record.branch);
    const [staged, final] = [`${folder}/${record.committedName}`, `${folder}/${record.manifestName}`];
    let readable = record;
    try {
      const objects = await storage.at(location);
      const isLeftOver = async (there: StoredObject, ours: StoredObject) => {
        const before = await versionBefore(store.read, record);
        const foundBefore = before && (await objects.find(`${folder}/${before.manifestName}`));
        return there.modifiedAtMillis < (foundBefore ?? ours).modifiedAtMillis;
      };
      const put = () => putInPlace(objects, staged, final, isLeftOver);
      // Whoever finds the name taken looks closer, and may free it: one at a time.
      const isInPlace =
        (await objects.copy(staged, final)) === "copied" || (await store.exclusively(`${uri}\n${final}`, put));
      if (!isInPlace) {
        const withdrawn = await store.write((session) => withdraw(session, record));
        log.warn({ staged, final, withdrawn }, lost);
        return withdrawn ? undefined : record;
      }
      readable = { ...record, finished: true };
      await objects.delete(staged);
      await store.write((session) => finishVersion(session, record));
    } catch (error) {
      log.warn({ err: error, staged }, "a committed manifest is not finished yet");
    }
    return readable;
  }

  async function deleteObjects(uri: string): Promise<void> {
    try {
      const location = parseLocation(uri);
      const objects = await storage.at(location);
      await store.exclusively(uri, async () => {
        // Once the deletion is done, another table may be here.
        if (!(await isDeletionPending(store.read, uri))) return;
        await objects.deleteFolder(location.path);
        await store.write((session) => deletePendingDeletion(session, uri));
      });
    } catch (error) {
      log.warn({ err: error, location: uri }, "the objects of a dropped table are not deleted yet");
    }
  }

  return {
    finishVersion: (location, record) => {
      if (record.finished) return Promise.resolve(record);
      const key = `${location}\n${record.branch}\n${record.version}`;
      let work = underWay.get(key);
      if (work === undefined) {
        work = finish(location, record).finally(() => underWay.delete(key));
        underWay.set(key, work);
      }
      return work;
    },
    deleteObjects,
    async sweep() {
      const unfinished = await listUnfinishedVersions(store.read, sweepBatch);
      for (const { location, record } of unfinished) await this.finishVersion(location, record);
      const expiredMillis = Date.now() - dropRetentionMs;
      for (const { id } of await listDroppedTables(store.read, { untilMillis: expiredMillis, limit: sweepBatch }))
        await store.write((session) => dropForGood(session, id, expiredMillis));
      for (const location of await listPendingDeletions(store.read, sweepBatch)) await deleteObjects(location);
    },
  };
}

async function withdraw(session: Session, record: VersionRecord): Promise<boolean> {
  const withdrawn = await withdrawVersion(session, record);
  if (withdrawn) await failTransaction(session, record.transactionId, lost);
  return withdrawn;
}

/**
 * Gives a staged manifest its final name when that could not simply be done. Somebody else
 * may be finishing the same commit, but nobody else frees a name that is taken.
 *
 * @param isLeftOver Whether what has the final name is left from records that were all
 *   deleted. A writer that does not ask the catalog builds on the version before this one,
 *   so what it wrote is not older than that; it may well be older than what was staged here,
 *   because it may have waited between writing its manifest and giving it the name.
 * @returns False when the commit cannot stand: a client that got no answer deletes what it
 *   staged, and a writer that does not ask the catalog may have taken the name a moment
 *   before. Neither commit was acknowledged.
 */
async function putInPlace(
  objects: ObjectStore,
  staged: string,
  final: string,
  isLeftOver: (there: StoredObject, ours: StoredObject) => Promise<boolean>,
): Promise<boolean> {
  const [ours, there] = await Promise.all([objects.find(staged), objects.find(final)]);
  // An earlier attempt broke off after it had deleted the staged manifest, or before.
  if (ours === undefined) return there !== undefined;
  if (there?.identity === ours.identity) return true;
  if (there !== undefined) {
    if (!(await isLeftOver(there, ours))) return false;
    await objects.delete(final);
  }
  const outcome = await objects.copy(staged, final);
  if (outcome === "copied") return true;
  const now = await objects.find(final);
  // Another replica was faster; it may have deleted the staged manifest already.
  return now !== undefined && (outcome === "missing" || now.identity === ours.identity);
}
