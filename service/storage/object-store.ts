/**
 * What the catalog needs of the place where tables live. Keys are paths inside the store,
 * without a leading slash. Calls may be repeated: doing one twice is doing it once.
 *
 * Every method throws CatalogError ServiceUnavailable when the store cannot be used now.
 */
export interface ObjectStore {
  /** Whether the object is there; if it is, it also survives a crash of the store from now on. */
  persisted(key: string): Promise<boolean>;
  /**
   * Gives the object a second name, durably; what had that name is replaced.
   *
   * @returns Whether there was an object to copy.
   */
  copy(from: string, to: string): Promise<boolean>;
  /** Deletes the object; one that is not there is no error. */
  delete(key: string): Promise<void>;
  /** The keys of all objects in a folder, at any depth. */
  list(folder: string): AsyncIterable<string>;
  /** Deletes a folder and everything in it; one that is not there is no error. */
  deleteFolder(folder: string): Promise<void>;
}
