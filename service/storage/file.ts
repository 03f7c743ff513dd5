import { copyFile, link, lstat, open, opendir, rename, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unavailable } from "./errors.ts";
import type { ObjectStore } from "./object-store.ts";

/** The local file system, or one that is mounted on every replica. */
export function openFileStore(): ObjectStore {
  return {
    persisted: (key) => guarded(key, () => persisted(toFile(key))),
    copy: (from, to) => guarded(to, () => copy(toFile(from), toFile(to))),
    delete: (key) => guarded(key, () => remove(toFile(key))),
    list: (folder) => list(toFile(folder)),
    deleteFolder: (folder) => guarded(folder, () => rm(toFile(folder), { recursive: true, force: true })),
  };
}

async function persisted(file: string): Promise<boolean> {
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
async function copy(from: string, to: string): Promise<boolean> {
  const temporary = `${to}.${crypto.randomUUID()}.tmp`;
  try {
    await link(from, to);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return false;
    if (code === "EEXIST" && (await isSameFile(from, to))) return true;
    if (code === "EEXIST") await link(from, temporary);
    else if (code === "EPERM" || code === "ENOTSUP" || code === "EOPNOTSUPP" || code === "EMLINK")
      await copyContent(from, temporary);
    else throw error;
    await rename(temporary, to);
  }
  await syncFolder(dirname(to));
  return true;
}

async function copyContent(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  await using handle = await open(to, "r");
  await handle.sync();
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([lstat(one), lstat(other)]);
  return a.ino === b.ino && a.dev === b.dev;
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

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync();
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
