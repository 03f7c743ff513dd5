import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { LocatedVersion, VersionRecord } from "../store/versions.ts";

export interface StoreDeps {
  readonly store: Store;
  readonly storage: Storage;
}

export interface CommitDeps extends StoreDeps {
  readonly finishing: Finishing;
}

/** A version whose manifest has its final name. The name may not be durable yet. */
export interface PlacedVersion extends LocatedVersion {
  /** Reports whether the identity of the placed manifest differs from that of the staged one. */
  readonly hasNewIdentity: boolean;
}

/**
 * Finishes commits by reconciling the object store with the database (step 4 of a commit). Each part is idempotent and
 * may be interrupted, because the record stays unfinished until the end.
 */
export interface Finishing {
  /**
   * Places the manifest of a record. Soon afterwards, the placement becomes durable, it is recorded, and the staged
   * name is deleted.
   *
   * @returns The placed version; undefined if the version does not exist and its record was withdrawn.
   * @throws CatalogError ServiceUnavailable if the version is in doubt. It is finished or withdrawn later.
   */
  finish(located: LocatedVersion): Promise<VersionRecord | undefined>;
  /** Completes a version whose manifest already has its final name. */
  note(placed: PlacedVersion): void;
  /** Finishes the versions that a transaction left unfinished, or rolls them back if it did not reach its commit point. */
  finishTransaction(id: string): Promise<void>;
  /** Inserts tasks for unfinished versions that were recorded up to a time and have no task. */
  findForgotten(beforeMillis: number): Promise<void>;
  settled(): Promise<void>;
}
