import type { Log } from "../log.ts";
import { parseLocation } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import { deletePendingDeletion, listPendingDeletions } from "../store/tables.ts";
import { finishVersion, listUnfinishedVersions, type VersionRecord } from "../store/versions.ts";
import { versionsFolder } from "./manifest.ts";

/** How many records or locations one step of a sweep takes up. */
const sweepBatch = 1000;

/**
 * Does in the object store what was decided in the database: gives committed manifests
 * their final names, and deletes the objects of dropped tables. What is done here may be
 * repeated or break off at any point; the database says until the end that it is to be done.
 */
export interface Finisher {
  /**
   * Copies a staged manifest to its final name, deletes the staged one, and notes it.
   * Never throws: a record that cannot be finished now is answered as it is.
   */
  finishVersion(location: string, record: VersionRecord): Promise<VersionRecord>;
  /** Deletes the objects at the location of a dropped table. Never throws: what fails is left to the sweep. */
  deleteObjects(location: string): Promise<void>;
  /** Takes up everything that is left to be done. */
  sweep(): Promise<void>;
}

export function createFinisher(parts: {
  readonly store: Store;
  readonly storage: Storage;
  readonly log: Log;
}): Finisher {
  const { store, storage, log } = parts;
  /** Readers of a version that is just being committed wait for the same work. */
  const underWay = new Map<string, Promise<VersionRecord>>();

  async function finish(uri: string, record: VersionRecord): Promise<VersionRecord> {
    const location = parseLocation(uri);
    const folder = versionsFolder(location, record.branch);
    const [staged, final] = [`${folder}/${record.committedName}`, `${folder}/${record.manifestName}`];
    let readable = record;
    try {
      const objects = await storage.at(location);
      if (!(await objects.copy(staged, final)) && !(await objects.persisted(final))) {
        log.error({ staged, final }, "a committed manifest is gone");
        return record;
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
      await objects.deleteFolder(location.path);
      await store.write((session) => deletePendingDeletion(session, uri));
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
      for (const location of await listPendingDeletions(store.read, sweepBatch)) await deleteObjects(location);
    },
  };
}
