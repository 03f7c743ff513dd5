import type { Log } from "../log.ts";
import { parseLocation } from "../storage/location.ts";
import type { ObjectStore, StoredObject } from "../storage/object-store.ts";
import type { Storage } from "../storage/storage.ts";
import { insertAuditOutcome } from "../store/audit.ts";
import { listDroppedTables } from "../store/dropped-tables.ts";
import type { Session, Store } from "../store/store.ts";
import { isDeletionPending, listPendingDeletions } from "../store/tables.ts";
import {
  finishVersion,
  listUnfinishedVersions,
  type VersionRecord,
  versionBefore,
  withdrawVersion,
} from "../store/versions.ts";
import { deleteRemains, dropForGood } from "./drop.ts";
import { versionsFolder } from "./manifest.ts";

/** How many records or locations one sweep takes up. */
const sweepBatch = 1000;
/** How many manifests one database transaction notes at most. */
const noteBatch = 256;
const lost = "the manifest was deleted, or its name was taken, before the commit was finished";
const unfinished = "a committed manifest is not finished yet";

/**
 * Does in the object store what was decided in the database: gives committed manifests
 * their final names, and deletes the objects of dropped tables. What is done here may be
 * repeated or break off at any point; the database says until the end that it is to be done.
 */
export interface Finisher {
  /**
   * Gives a staged manifest its final name, and sees to it that this becomes durable and is
   * noted, and the staged name is deleted, soon after. Never throws: a record that cannot be
   * finished now is answered as it is.
   *
   * @returns undefined when the version turned out to be none and its record was withdrawn.
   */
  finishVersion(location: string, record: VersionRecord): Promise<VersionRecord | undefined>;
  /** Deletes the objects at the location of a dropped table. Never throws: what fails is left to the sweep. */
  deleteObjects(location: string): Promise<void>;
  /** Takes up everything that is left to be done, and waits until it is noted. */
  sweep(): Promise<void>;
  /** Resolves when all manifests that have their final names are noted. */
  settled(): Promise<void>;
}

export interface FinisherParts {
  readonly store: Store;
  readonly storage: Storage;
  readonly log: Log;
  /** How long dropped tables are kept. */
  readonly dropRetentionMs: number;
}

/** A version whose manifest has its final name, of which a crash of the machine might know nothing. */
interface Placed {
  readonly objects: ObjectStore;
  /** Names the branch of its table. */
  readonly branch: string;
  readonly folder: string;
  readonly staged: string;
  readonly record: VersionRecord;
}

export function createFinisher({ store, storage, log, dropRetentionMs }: FinisherParts): Finisher {
  /** The versions that are being finished: readers of one that is just being committed wait for the same work. */
  const underWay = new Map<string, Promise<VersionRecord | undefined>>();
  const placed: Placed[] = [];
  let noting: Promise<void> | undefined;

  async function place(uri: string, record: VersionRecord, key: string): Promise<VersionRecord | undefined> {
    const location = parseLocation(uri);
    const folder = versionsFolder(location, record.branch);
    const [staged, final] = [`${folder}/${record.committedName}`, `${folder}/${record.manifestName}`];
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
      if (isInPlace) {
        placed.push({ objects, branch: `${uri}\n${record.branch}`, folder, staged, record });
        noting ??= notePlaced();
        return { ...record, finished: true };
      }
      const withdrawn = await store.write((session) => withdraw(session, record));
      log.warn({ staged, final, withdrawn }, lost);
      underWay.delete(key);
      return withdrawn ? undefined : record;
    } catch (error) {
      log.warn({ err: error, staged }, unfinished);
      underWay.delete(key);
      return record;
    }
  }

  /**
   * Notes what is placed, group by group: versions that are committed meanwhile are the next
   * group, and share a sync of their folder and a database transaction.
   */
  async function notePlaced(): Promise<void> {
    while (placed.length > 0) {
      const group = placed.splice(0, noteBatch);
      const byBranch = Map.groupBy(group, ({ branch }) => branch);
      const settled = (await Promise.all([...byBranch.values()].map(settle))).flat();
      try {
        await store.write(async (session) => {
          for (const { record } of settled) await finishVersion(session, record);
        });
      } catch (error) {
        log.warn({ err: error, versions: settled.length }, unfinished);
      }
      for (const { branch, record } of group) underWay.delete(`${branch}\n${record.version}`);
    }
    noting = undefined;
  }

  /** The staged name goes when the final one is durable. @returns Those of one folder that can be noted. */
  async function settle(group: readonly Placed[]): Promise<readonly Placed[]> {
    const [first] = group;
    try {
      await first?.objects.settle(first.folder);
      await Promise.all(group.map(({ objects, staged }) => objects.delete(staged)));
      return group;
    } catch (error) {
      log.warn({ err: error, folder: first?.folder }, unfinished);
      return [];
    }
  }

  async function deleteObjects(uri: string): Promise<void> {
    try {
      const location = parseLocation(uri);
      const objects = await storage.at(location);
      await store.exclusively(uri, async () => {
        // Once the deletion is done, another table may be here.
        if (!(await isDeletionPending(store.read, uri))) return;
        await deleteRemains(store, uri, () => objects.deleteFolder(location.path));
      });
    } catch (error) {
      log.warn({ err: error, location: uri }, "what a dropped table left behind is not deleted yet");
    }
  }

  return {
    finishVersion: (location, record) => {
      if (record.finished) return Promise.resolve(record);
      const key = `${location}\n${record.branch}\n${record.version}`;
      let work = underWay.get(key);
      if (work === undefined) {
        work = place(location, record, key);
        underWay.set(key, work);
      }
      return work;
    },
    deleteObjects,
    async sweep() {
      for (const { location, record } of await listUnfinishedVersions(store.read, sweepBatch))
        await this.finishVersion(location, record);
      await this.settled();
      const expiredMillis = Date.now() - dropRetentionMs;
      for (const { id } of await listDroppedTables(store.read, { untilMillis: expiredMillis, limit: sweepBatch }))
        await store.write((session) => dropForGood(session, id, expiredMillis));
      for (const location of await listPendingDeletions(store.read, sweepBatch)) await deleteObjects(location);
    },
    settled: async () => {
      while (noting !== undefined) await noting;
    },
  };
}

async function withdraw(session: Session, record: VersionRecord): Promise<boolean> {
  const withdrawn = await withdrawVersion(session, record);
  if (withdrawn) await insertAuditOutcome(session, record.transactionId, "Failed", lost);
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
 *   before. Neither commit was acknowledged, unless the store had failed when ours was.
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
  const isOurs = (found: StoredObject) => haveSameContent(objects, [staged, ours], [final, found]);
  if (there !== undefined) {
    if (await isOurs(there)) return true;
    if (!(await isLeftOver(there, ours))) return false;
    await objects.delete(final);
  }
  const outcome = await objects.copy(staged, final);
  if (outcome === "copied") return true;
  const now = await objects.find(final);
  // Another replica was faster; it may have deleted the staged manifest already.
  return now !== undefined && (outcome === "missing" || (await isOurs(now)));
}

type KeyedObject = readonly [key: string, object: StoredObject];

/** Whether two objects have the same content; reads them when their identities do not tell. One that is gone has the same. */
async function haveSameContent(
  objects: ObjectStore,
  [oneKey, one]: KeyedObject,
  [otherKey, other]: KeyedObject,
): Promise<boolean> {
  if (one.identity === other.identity) return true;
  if (one.sizeBytes !== other.sizeBytes) return false;
  const read = [oneKey, otherKey].map((key) => objects.read(key, one.sizeBytes));
  const [oneContent, otherContent] = await Promise.all(read);
  if (oneContent === undefined || otherContent === undefined) return otherContent !== undefined;
  return Buffer.compare(oneContent.bytes, otherContent.bytes) === 0;
}
