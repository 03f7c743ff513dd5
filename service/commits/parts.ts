import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { LocatedVersion, VersionRecord } from "../store/versions.ts";

/** The database and the object stores of a catalog. */
export interface StoreParts {
  readonly store: Store;
  readonly storage: Storage;
}

/** The dependencies of the steps of a commit. */
export interface CommitParts extends StoreParts {
  readonly finishing: Finishing;
}

/** A version whose manifest has its final name, which may not be durable yet. */
export interface PlacedVersion extends LocatedVersion {
  /** Whether the placed manifest has another identity than the staged one. */
  readonly hasNewIdentity: boolean;
}

/**
 * Step 4 of a commit: reconciles the object store with the database. Each part is idempotent and may be interrupted: the
 * record stays unfinished until the end.
 */
export interface Finishing {
  /**
   * Places the manifest of a record. Soon after, the placement becomes durable and is recorded, and the staged name is
   * deleted.
   *
   * @returns undefined when the version does not exist, and its record was withdrawn.
   * @throws CatalogError ServiceUnavailable: the version is in doubt, and is finished or withdrawn later.
   */
  finish(located: LocatedVersion): Promise<VersionRecord | undefined>;
  /** Completes a version whose manifest has its final name. */
  note(placed: PlacedVersion): void;
  /** Finishes the versions that a transaction left unfinished, or rolls them back if it missed its commit point. */
  finishTransaction(id: string): Promise<void>;
  /** Inserts tasks for versions that were recorded until a time and have no task. */
  findForgotten(beforeMillis: number): Promise<void>;
  /** Resolves when all placed manifests are recorded. */
  settled(): Promise<void>;
}
