/** What is known of an object without reading it. */
export interface StoredObject {
  /** The same for two objects that have the same content; two that differ may have different ones. */
  readonly identity: string;
  /** When the object was written, by the store's own clock. */
  readonly modifiedAtMillis: number;
}

/** What became of a copy: `missing` when there is nothing to copy, `exists` when the name is taken. */
export type CopyOutcome = "copied" | "missing" | "exists";

/**
 * What the catalog needs of the place where tables live. Keys are paths inside the store,
 * without a leading slash.
 *
 * Every method throws CatalogError ServiceUnavailable when the store cannot be used now.
 */
export interface ObjectStore {
  /** @returns undefined when there is no such object. */
  find(key: string): Promise<StoredObject | undefined>;
  /** Whether the object is there; if it is, it also survives a crash of the store from now on. */
  persist(key: string): Promise<boolean>;
  /**
   * Gives the object a second name, unless there is an object of that name already. The new
   * name survives a crash of the store once its folder is settled.
   */
  copy(from: string, to: string): Promise<CopyOutcome>;
  /** Makes all names in a folder survive a crash of the store; what is in its folders is not meant. */
  settle(folder: string): Promise<void>;
  /** Deletes the object; one that is not there is no error. */
  delete(key: string): Promise<void>;
  /** The keys of all objects in a folder, at any depth. */
  list(folder: string): AsyncIterable<string>;
  /** Deletes a folder and everything in it; one that is not there is no error. */
  deleteFolder(folder: string): Promise<void>;
}
