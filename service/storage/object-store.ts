import { CatalogError } from "@tiltyard/protocol";

export interface StoredObject {
  /**
   * The identity of the content: objects with equal identities have equal content. Objects with different identities
   * may also have equal content, because on S3 each object that is encrypted with a KMS key or uploaded in parts has a
   * unique identity. No rule depends on the other fields.
   */
  readonly identity: string;
  /** The time of the last write by the clock of the store. */
  readonly modifiedAtMillis: number;
  readonly sizeBytes: number;
}

/** The timeout of a request to a cloud store. */
export const storeSilenceMaxMs = 10_000;

/** The default maximum size of an object that is read as a whole. */
export const readBytesMax = 1024 * 1024;

export interface ReadObject extends StoredObject {
  readonly bytes: Uint8Array;
  /** The revision, which changes when the object is rewritten. */
  readonly revision: string;
}

export interface Copied {
  /** The result: `missing` if the original does not exist, `exists` if the name is already in use. */
  readonly outcome: "copied" | "missing" | "exists";
  /** The identity of the copy if it may differ from that of the original. */
  readonly identity?: string | undefined;
}

export interface ListedObject extends StoredObject {
  readonly key: string;
}

/** A store of objects by paths without a leading slash. Every method throws CatalogError ServiceUnavailable. */
export interface ObjectStore {
  /** The options with which Lance's library accesses the same store with the same credentials. */
  readonly libraryOptions: Readonly<Record<string, string>>;
  /** Finds an object. @returns undefined if it does not exist. */
  find(key: string): Promise<StoredObject | undefined>;
  /** Reads an object like `read` and ensures that it survives a crash of the store. */
  persist(key: string, bytesMax?: number): Promise<ReadObject | undefined>;
  /**
   * Copies an object to a different name unless the name is already in use. The new name survives a crash of the store
   * only after its folder is synced.
   *
   * @param replaced The only object that the copy may replace.
   */
  copy(from: string, to: string, replaced?: StoredObject): Promise<Copied>;
  /** Syncs the names in a folder (fsync), without those in its subfolders. */
  syncFolder(folder: string): Promise<void>;
  /** @param bytesMax By default `readBytesMax`. @throws CatalogError InvalidTableState if the object is larger. */
  read(key: string, bytesMax?: number): Promise<ReadObject | undefined>;
  /** Writes an object durably and atomically unless the name is already in use. @returns False if it is. */
  create(key: string, content: string | Uint8Array): Promise<boolean>;
  /**
   * Replaces a small object durably and atomically unless it has changed since it was read. A file system cannot
   * compare and write in one step, so a concurrent write may be overwritten there.
   *
   * @returns False if the object was written or deleted since.
   */
  replace(key: string, text: string, revision: string): Promise<boolean>;
  /** Deletes an object if it exists. @param only The only object with this name to delete. */
  delete(key: string, only?: StoredObject): Promise<void>;
  /** Lists the objects in a folder at any depth. @param before Restricts the list to keys before this one. */
  list(folder: string, before?: string): AsyncIterable<ListedObject>;
  /** Deletes a folder if it exists. @param proceed Runs directly before each step and throws to stop. */
  deleteFolder(folder: string, proceed?: () => void): Promise<void>;
}

/** Creates the error of an unavailable store. The cause is only logged, because it may name hosts and accounts. */
export function unavailable(key: string, cause: unknown): CatalogError {
  return new CatalogError("ServiceUnavailable", `The storage of ${key} cannot be used now; try again.`, { cause });
}

/** Runs a request to a store. @throws CatalogError of the request; ServiceUnavailable if it fails otherwise. */
export async function orUnavailable<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CatalogError ? error : unavailable(key, error);
  }
}

/** An object that is read as a whole exceeds the expected size. */
export class TooLargeError extends CatalogError {
  constructor(key: string, sizeBytes: number, bytesMax: number) {
    super("InvalidTableState", `${key} has ${sizeBytes} bytes; ${bytesMax} are allowed`);
  }
}

/**
 * Reports whether an object has a content. The library of a cloud repeats a conditional write whose response was lost,
 * and then its own object fails the condition.
 */
export async function hasContent({ read }: Pick<ObjectStore, "read">, key: string, content: string | Uint8Array) {
  const expected = Buffer.from(content);
  try {
    const found = await read(key, expected.length);
    return found !== undefined && expected.equals(found.bytes);
  } catch (error) {
    if (error instanceof TooLargeError) return false;
    throw error;
  }
}

/** @throws TooLargeError */
export function requireReadable(key: string, sizeBytes: number, bytesMax: number = readBytesMax): void {
  if (sizeBytes > bytesMax) throw new TooLargeError(key, sizeBytes, bytesMax);
}
