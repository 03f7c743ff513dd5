import { closeSync, constants, fstatSync, fsync, openSync, readlinkSync, type Stats, unlink } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { codeOf } from "../error-code.ts";
import type { StoredObject } from "./object-store.ts";

/** The calls of a commit that wait for the disk: disk-thread.ts makes them in a thread of their own. */
export const diskCalls = {
  persist: persistFile,
  sync: syncFile,
  delete: deleteFile,
} as const satisfies Readonly<Record<string, (file: string) => Promise<unknown>>>;

export type DiskCalls = typeof diskCalls;

// The functions of node:fs/promises take longer.
const syncToDisk = promisify(fsync);
const removeName = promisify(unlink);
/** A pipe without a process at its other end is opened at once, too. */
export const openToRead = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

interface PersistedFile {
  readonly object: StoredObject;
  /** Without links; undefined where the system does not tell. */
  readonly path: string | undefined;
}

/** Syncs a file and its name (fsync). @returns undefined when there is no such file. */
async function persistFile(file: string): Promise<PersistedFile | undefined> {
  const descriptor = orMissing(() => openSync(file, openToRead));
  if (descriptor === undefined) return undefined;
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) return undefined;
    await Promise.all([syncToDisk(descriptor), syncFile(dirname(file))]);
    return { object: toStoredObject(found), path: pathOf(descriptor) };
  } finally {
    closeSync(descriptor);
  }
}

/** The path of an open file by one call of Linux. To resolve each part of a path takes a commit several times as long. */
function pathOf(descriptor: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return undefined;
  }
}

/** Syncs a file, or a folder (fsync), which makes the names in it durable. */
export async function syncFile(file: string): Promise<void> {
  const descriptor = openSync(file, openToRead);
  try {
    await syncToDisk(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

async function deleteFile(file: string): Promise<void> {
  try {
    await removeName(file);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/**
 * A hard link has the identity of its file. A number that is used again comes with a time of birth of its own,
 * which nothing changes; some file systems know none.
 */
export function toStoredObject({ ino, size, mtimeMs, birthtimeMs }: Stats): StoredObject {
  return { identity: `${ino}:${size}:${birthtimeMs || mtimeMs}`, modifiedAtMillis: mtimeMs, sizeBytes: size };
}

export function orMissing<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether an error says that no such file can be there. */
export function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(codeOf(error) ?? "");
}
