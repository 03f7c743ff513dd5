import { closeSync, constants, fstatSync, fsync, lstatSync, openSync } from "node:fs";
import { copyFile, link, opendir, rename, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { unavailable } from "./errors.ts";
import type { CopyOutcome, ObjectStore, StoredObject } from "./object-store.ts";

/**
 * The local file system, or one that is mounted on every replica. What only looks at a file
 * takes some microseconds, and is done at once: to hand it to another thread takes longer.
 * What waits for the disk is handed over.
 */
export function openFileStore(): ObjectStore {
  return {
    find: (key) => guarded(key, async () => find(toFile(key))),
    persist: (key) => guarded(key, () => persist(toFile(key))),
    copy: (from, to) => guarded(to, () => copy(toFile(from), toFile(to))),
    settle: (folder) => guarded(folder, () => syncFile(toFile(folder))),
    delete: (key) => guarded(key, () => remove(toFile(key))),
    list: (folder) => list(toFile(folder)),
    deleteFolder: (folder) => guarded(folder, () => rm(toFile(folder), { recursive: true, force: true })),
  };
}

const syncToDisk = promisify(fsync);
/** A pipe that has nobody at its other end is opened at once, too. */
const openToSync = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

function find(file: string): StoredObject | undefined {
  const found = orMissing(() => lstatSync(file));
  if (!found?.isFile()) return undefined;
  return { identity: `${found.dev}:${found.ino}`, modifiedAtMillis: found.mtimeMs };
}

async function persist(file: string): Promise<boolean> {
  const descriptor = orMissing(() => openSync(file, openToSync));
  if (descriptor === undefined) return false;
  try {
    if (!fstatSync(descriptor).isFile()) return false;
    await Promise.all([syncToDisk(descriptor), syncFile(dirname(file))]);
  } finally {
    closeSync(descriptor);
  }
  return true;
}

/** A hard link is a copy that costs nothing and appears at once; file systems without them get a real copy. */
async function copy(from: string, to: string): Promise<CopyOutcome> {
  try {
    await link(from, to);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return "missing";
    if (code === "EEXIST") return "exists";
    if (code === "EPERM" || code === "ENOTSUP" || code === "EOPNOTSUPP" || code === "EMLINK")
      return copyContent(from, to);
    throw error;
  }
  return "copied";
}

/** The content is complete and on the disk before its name appears. */
async function copyContent(from: string, to: string): Promise<CopyOutcome> {
  const temporary = `${to}.${crypto.randomUUID()}.tmp`;
  await copyFile(from, temporary);
  try {
    await syncFile(temporary);
    // Without hard links there is no rename that spares an existing file: this is the nearest to it.
    if (find(to) !== undefined) return "exists";
    await rename(temporary, to);
  } finally {
    await rm(temporary, { force: true });
  }
  return "copied";
}

async function remove(file: string): Promise<void> {
  try {
    await unlink(file);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

async function* list(folder: string): AsyncIterable<string> {
  try {
    for await (const entry of await opendir(folder, { recursive: true }))
      if (entry.isFile()) yield join(entry.parentPath, entry.name).slice(1);
  } catch (error) {
    if (isMissing(error)) return;
    throw unavailable(folder, error);
  }
}

/** A folder is synced as a file is: the names in it survive a crash then. */
async function syncFile(file: string): Promise<void> {
  const descriptor = openSync(file, openToSync);
  try {
    await syncToDisk(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function toFile(key: string): string {
  return `/${key}`;
}

async function guarded<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(key, error);
  }
}

function orMissing<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** The codes that say that no such file can be there. */
function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(codeOf(error) ?? "");
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
