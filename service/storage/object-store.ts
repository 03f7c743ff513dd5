/** What is known of an object without reading it. */
export interface StoredObject {
  /**
   * Two objects of the same identity have the same content. Objects of different identities may have it too:
   * on S3 each object that is encrypted with a key of KMS or was uploaded in parts has its own. No rule
   * depends on the other fields.
   */
  readonly identity: string;
  /** When the object was written, by the store's own clock. */
  readonly modifiedAtMillis: number;
  readonly sizeBytes: number;
}

/** The timeout after which a request to a cloud's store is retried, a limited number of times. */
export const storeSilenceMaxMs = 10_000;

/** The most that an object may have that is read as a whole, unless the reader says otherwise. */
export const readBytesMax = 1024 * 1024;

/** An object that was read. */
export interface ReadObject {
  readonly bytes: Uint8Array;
  /** The state in which it was read: a rewritten object has another one. */
  readonly revision: string;
}

/** The outcome of a copy. */
export interface Copied {
  /** `missing` when there is nothing to copy, `exists` when the name is taken. */
  readonly outcome: "copied" | "missing" | "exists";
  /** The identity of the copy, where it need not be that of the original. */
  readonly identity?: string | undefined;
}

/** An object of a listing. */
export interface ListedObject extends StoredObject {
  readonly key: string;
}

/**
 * What the catalog needs of the place where tables live. Keys are paths inside the store,
 * without a leading slash.
 *
 * Every method throws CatalogError ServiceUnavailable when the store cannot be used now.
 */
export interface ObjectStore {
  /** The options with which Lance's own library reaches the same store; it finds credentials where this one does. */
  readonly libraryOptions: Readonly<Record<string, string>>;
  /** @returns undefined when there is no such object. */
  find(key: string): Promise<StoredObject | undefined>;
  /** As `find`; an object that is there also survives a crash of the store from now on. */
  persist(key: string): Promise<StoredObject | undefined>;
  /**
   * Gives the object a second name, unless there is an object of that name already. The new
   * name survives a crash of the store once its folder is synced.
   *
   * @param replaced What the name may stand for until now: that object, and no other, is replaced.
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
  /**
   * Writes an object, durably and at once, unless there is one of that name already.
   *
   * @returns False when the name is taken.
   */
  create(key: string, content: string | Uint8Array): Promise<boolean>;
  /**
   * Replaces a small object, durably and at once, if it is unchanged since it was read. A file system
   * cannot compare and write in one step: a concurrent write may be overwritten there.
   *
   * @returns False when the object was written or deleted since.
   */
  replace(key: string, text: string, revision: string): Promise<boolean>;
  /**
   * Deletes the object; one that is not there is no error.
   *
   * @param only Leaves any other object of that name alone.
   */
  delete(key: string, only?: StoredObject): Promise<void>;
  /**
   * All objects in a folder, at any depth.
   *
   * @param before Only those whose keys sort before this one: stores that list in order stop there.
   */
  list(folder: string, before?: string): AsyncIterable<ListedObject>;
  /**
   * Deletes a folder and everything in it; one that is not there is no error.
   *
   * @param proceed Is called right before each step, in the same turn of the event loop; it throws to end the work.
   */
  deleteFolder(folder: string, proceed?: () => void): Promise<void>;
}
