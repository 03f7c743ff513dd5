import { copyFile, link, lstat, open, opendir, rename, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unavailable } from "./errors.ts";
import type { CopyOutcome, ObjectStore, StoredObject } from "./object-store.ts";

/** The local file system, or one that is mounted on every replica. */
export function openFileStore(): ObjectStore {
  return {
    libraryOptions: {},
    find: (key) => guarded(key, () => find(toFile(key))),
    persist: (key) => guarded(key, () => persist(toFile(key))),
    copy: (from, to) => guarded(to, () => copy(toFile(from), toFile(to))),
    delete: (key) => guarded(key, () => remove(toFile(key))),
    list: (folder) => list(toFile(folder)),
    deleteFolder: (folder) => guarded(folder, () => rm(toFile(folder), { recursive: true, force: true })),
  };
}

async function find(file: string): Promise<StoredObject | undefined> {
  const found = await orMissing(lstat(file));
  if (!found?.isFile()) return undefined;
  return { identity: `${found.dev}:${found.ino}`, modifiedAtMillis: found.mtimeMs };
}

async function persist(file: string): Promise<boolean> {
  const handle = await orMissing(open(file, "r"));
  if (handle === undefined) return false;
  try {
    if (!(await handle.stat()).isFile()) return false;
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncFolder(dirname(file));
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
  await syncFolder(dirname(to));
  return "copied";
}

/** The content is complete and on the disk before its name appears. */
async function copyContent(from: string, to: string): Promise<CopyOutcome> {
  const temporary = `${to}.${crypto.randomUUID()}.tmp`;
  await copyFile(from, temporary);
  try {
    await syncFile(temporary);
    // Without hard links there is no rename that spares an existing file: this is the nearest to it.
    if ((await find(to)) !== undefined) return "exists";
    await rename(temporary, to);
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(dirname(to));
  return "copied";
}

async function remove(file: string): Promise<void> {
  await orMissing(unlink(file));
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

async function syncFile(file: string): Promise<void> {
  await using handle = await open(file, "r");
  await handle.sync();
}

/** Makes the names in a folder survive a crash. A folder is synced as a file is. */
const syncFolder = syncFile;

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

async function orMissing<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
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
