/** The metadata of an object. */
export interface StoredObject {
  /**
   * Objects with the same identity have the same content. Objects with different identities may have the same content
   * too: on S3, each object that is encrypted with a KMS key or uploaded in parts has an identity of its own. No rule
   * depends on the other fields.
   */
  readonly identity: string;
  /** The time of the last write, by the clock of the store. */
  readonly modifiedAtMillis: number;
  readonly sizeBytes: number;
}

/** The timeout of a request to a cloud store. */
export const storeSilenceMaxMs = 10_000;

/** The default maximum size of an object that is read as a whole. */
export const readBytesMax = 1024 * 1024;

/** An object that was read. */
export interface ReadObject {
  readonly bytes: Uint8Array;
  /** The state of the object: a rewritten object has another revision. */
  readonly revision: string;
}

/** The outcome of a copy. */
export interface Copied {
  /** `missing` without an object to copy, `exists` when the name is taken. */
  readonly outcome: "copied" | "missing" | "exists";
  /** The identity of the copy, if it may differ from the original's. */
  readonly identity?: string | undefined;
}

/** An object of a listing. */
export interface ListedObject extends StoredObject {
  readonly key: string;
}

/**
 * A store of table files. Keys are paths inside the store, without a leading slash. Every method throws CatalogError
 * ServiceUnavailable when the store is unavailable.
 */
export interface ObjectStore {
  /** The options with which Lance's library reaches the same store, with the same credentials. */
  readonly libraryOptions: Readonly<Record<string, string>>;
  /** @returns undefined when there is no such object. */
  find(key: string): Promise<StoredObject | undefined>;
  /** As `find`; the object also survives a crash of the store from now on. */
  persist(key: string): Promise<StoredObject | undefined>;
  /**
   * Copies an object to another name, unless the name is taken. The new name survives a crash of the store once its
   * folder is synced.
   *
   * @param replaced The only object that the copy may replace.
   */
  copy(from: string, to: string, replaced?: StoredObject): Promise<Copied>;
  /** Makes all names in a folder durable (fsync), without those in its subfolders. */
  syncFolder(folder: string): Promise<void>;
  /**
   * @param bytesMax `readBytesMax` when undefined.
   * @returns undefined when there is no such object.
   * @throws CatalogError InvalidTableState for one that is larger.
   */
  read(key: string, bytesMax?: number): Promise<ReadObject | undefined>;
  /** Writes an object durably and atomically, unless the name is taken. @returns False when it is. */
  create(key: string, content: string | Uint8Array): Promise<boolean>;
  /**
   * Replaces a small object durably and atomically, unless it changed since it was read. A file system cannot compare and
   * write in one step: there, a concurrent write may be overwritten.
   *
   * @returns False when the object was written or deleted since.
   */
  replace(key: string, text: string, revision: string): Promise<boolean>;
  /**
   * Deletes an object if it exists.
   *
   * @param only Keeps any other object with the name.
   */
  delete(key: string, only?: StoredObject): Promise<void>;
  /**
   * Lists the objects in a folder, at any depth.
   *
   * @param before Lists only keys that sort before this one: stores that list in order stop there.
   */
  list(folder: string, before?: string): AsyncIterable<ListedObject>;
  /**
   * Deletes a folder with its content, if it exists.
   *
   * @param proceed Called right before each step, in the same turn of the event loop; throws to stop the work.
   */
  deleteFolder(folder: string, proceed?: () => void): Promise<void>;
}
