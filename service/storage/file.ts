import { copyFile, link, lstat, mkdir, open, opendir, realpath, rename, rm, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { requireReadable, unavailable } from "./errors.ts";
import type { CopyOutcome, ObjectStore, ReadObject, StoredObject } from "./object-store.ts";

/**
 * The local file system, or one that is mounted on every replica.
 *
 * @param roots The folders, as absolute paths, in which tables may live. A root may be a symbolic
 *   link; what is in one may not lead elsewhere through a link. That is looked at where a commit or
 *   a deletion begins: it keeps mistakes out, and nobody who changes links between two steps.
 */
export function openFileStore(roots: readonly string[] = []): ObjectStore {
  const inside = (path: string) => requireNoLink(path, roots);
  return {
    find: (key) => guarded(key, () => find(toFile(key))),
    persist: (key) => guarded(key, () => inside(toFile(key)).then(() => persist(toFile(key)))),
    copy: (from, to) => guarded(to, () => copy(toFile(from), toFile(to))),
    read: (key) => guarded(key, () => inside(toFile(key)).then(() => read(key))),
    create: (key, text) => guarded(key, () => inside(dirname(toFile(key))).then(() => create(toFile(key), text))),
    replace: (key, text, revision) =>
      guarded(key, () => inside(toFile(key)).then(() => replace(toFile(key), text, revision))),
    delete: (key) => guarded(key, () => remove(toFile(key))),
    list: (folder) => list(toFile(folder)),
    deleteFolder: (folder) =>
      guarded(folder, () => inside(toFile(folder)).then(() => rm(toFile(folder), { recursive: true, force: true }))),
  };
}

/** @throws CatalogError InvalidTableState when a path below a root leads out of where it says. */
async function requireNoLink(path: string, roots: readonly string[]): Promise<void> {
  const root = roots.find((each) => path.startsWith(`${each}/`));
  if (root === undefined) return;
  const [real, realRoot] = await Promise.all([orMissing(realpath(path)), orMissing(realpath(root))]);
  if (real !== undefined && realRoot !== undefined && real !== `${realRoot}${path.slice(root.length)}`)
    throw new CatalogError(
      "InvalidTableState",
      `${path} leads through a symbolic link to ${real}: tables are in folders, register the one that it leads to`,
    );
}

async function find(file: string): Promise<StoredObject | undefined> {
  const found = await orMissing(lstat(file));
  if (!found?.isFile()) return undefined;
  return { identity: `${found.dev}:${found.ino}`, modifiedAtMillis: found.mtimeMs, sizeBytes: found.size };
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

async function read(key: string): Promise<ReadObject | undefined> {
  await using handle = await orMissing(open(toFile(key), "r"));
  const found = await handle?.stat({ bigint: true });
  if (handle === undefined || !found?.isFile()) return undefined;
  requireReadable(key, Number(found.size));
  return { text: await handle.readFile("utf8"), revision: revisionOf(found) };
}

/** A file that is written anew is another one, with a time of its own should it get the number of the old one. */
function revisionOf({ ino, mtimeNs }: { readonly ino: bigint; readonly mtimeNs: bigint }): string {
  return `${ino}:${mtimeNs}`;
}

async function create(file: string, text: string): Promise<boolean> {
  await makeFolder(dirname(file));
  return withTemporary(file, text, async (temporary) => (await copy(temporary, file)) === "copied");
}

async function replace(file: string, text: string, revision: string): Promise<boolean> {
  return withTemporary(file, text, async (temporary) => {
    const found = await orMissing(lstat(file, { bigint: true }));
    if (found === undefined || revisionOf(found) !== revision) return false;
    await rename(temporary, file);
    await syncFolder(dirname(file));
    return true;
  });
}

/** Writes a file beside another one, complete and on the disk, for as long as the work lasts. */
async function withTemporary<Result>(
  file: string,
  text: string,
  work: (temporary: string) => Promise<Result>,
): Promise<Result> {
  const temporary = `${file}.${crypto.randomUUID()}.tmp`;
  try {
    await writeFile(temporary, text, { flush: true });
    return await work(temporary);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Makes a folder and those that it is in, with names that survive a crash. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
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
    throw error instanceof CatalogError ? error : unavailable(key, error);
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
