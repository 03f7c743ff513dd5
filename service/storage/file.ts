import {
  closeSync,
  type Dirent,
  fstatSync,
  linkSync,
  lstatSync,
  opendirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
} from "node:fs";
import { copyFile, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { codeOf } from "../error-code.ts";
import { inTurns } from "../in-turns.ts";
import { isMissing, openToRead, orMissing, syncFile, toStoredObject } from "./disk-calls.ts";
import { DiskThread } from "./disk-thread.ts";
import { requireReadable, unavailable } from "./errors.ts";
import { LinkGuard } from "./links.ts";
import type { Copied, ListedObject, ObjectStore, ReadObject, StoredObject } from "./object-store.ts";

/**
 * The local file system, or one that is mounted on every replica. A call that reads only metadata
 * takes some microseconds and is synchronous: a thread would take longer. A call that waits for
 * the disk is asynchronous.
 *
 * @param rootPaths The folders, as absolute paths, in which tables may live. What is in one may not lead elsewhere through a
 *   link. That is checked where a commit or a deletion begins.
 */
export function openFileStore(rootPaths: readonly string[] = []): ObjectStore {
  const links = new LinkGuard(rootPaths);
  const thread = new DiskThread();
  /** Runs work at a path that leads through no link. */
  const inside = <Result>(key: string, path: string, work: () => Promise<Result>) =>
    guarded(key, async () => {
      links.require(path);
      return work();
    });
  const persist = async (file: string) => {
    const persisted = await thread.run("persist", file);
    links.require(file, persisted?.path);
    return persisted?.object;
  };
  return {
    libraryOptions: {},
    find: (key) => guarded(key, async () => find(toFile(key))),
    persist: (key) => guarded(key, () => persist(toFile(key))),
    copy: (from, to, replaced) =>
      guarded(to, () =>
        replaced === undefined ? copy(toFile(from), toFile(to)) : moveOver(toFile(from), toFile(to), replaced),
      ),
    syncFolder: (folder) => guarded(folder, () => thread.run("sync", toFile(folder))),
    read: (key, bytesMax) => inside(key, toFile(key), () => read(key, bytesMax)),
    create: (key, content) => inside(key, dirname(toFile(key)), () => create(toFile(key), content)),
    replace: (key, text, revision) => inside(key, toFile(key), () => replace(toFile(key), text, revision)),
    delete: (key, only) =>
      guarded(key, () => (only === undefined ? thread.run("delete", toFile(key)) : removeUnchanged(toFile(key), only))),
    list: (folder, before) => list(toFile(folder), before),
    deleteFolder: (folder, proceed) => inside(folder, toFile(folder), () => removeFolder(toFile(folder), proceed)),
  };
}

function find(file: string): StoredObject | undefined {
  // Most look-ups find nothing, and an error costs more than the call.
  const found = orMissing(() => lstatSync(file, { throwIfNoEntry: false }));
  return found?.isFile() ? toStoredObject(found) : undefined;
}

/**
 * A hard link is a copy that costs nothing and appears at once; file systems without them get a real copy. A thread would
 * take a fifth of a commit's time: each would be answered in a turn of its own.
 */
async function copy(from: string, to: string): Promise<Copied> {
  try {
    linkSync(from, to);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return { outcome: "missing" };
    if (code === "EEXIST") return { outcome: "exists" };
    if (code === "EPERM" || code === "ENOTSUP" || code === "EOPNOTSUPP" || code === "EMLINK")
      return copyContent(from, to);
    throw error;
  }
  return { outcome: "copied" };
}

/**
 * Renames a file over another one. Nothing else of this process comes between the look and the rename; a
 * process that comes too late has no file to rename any more.
 */
async function moveOver(from: string, to: string, replaced: StoredObject): Promise<Copied> {
  const there = find(to);
  if (there === undefined) return copy(from, to);
  if (there.identity !== replaced.identity) return { outcome: "exists" };
  try {
    renameSync(from, to);
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { outcome: "missing" };
  }
  return { outcome: "copied" };
}

/** The content is complete and synced (fsync) before its name appears. */
async function copyContent(from: string, to: string): Promise<Copied> {
  const temporary = `${to}.${crypto.randomUUID()}.tmp`;
  await copyFile(from, temporary);
  try {
    await syncFile(temporary);
    // Without hard links there is no rename that spares an existing file: this is the nearest to it.
    if (find(to) !== undefined) return { outcome: "exists" };
    await rename(temporary, to);
  } finally {
    await rm(temporary, { force: true });
  }
  return { outcome: "copied", identity: find(to)?.identity };
}

async function read(key: string, bytesMax?: number): Promise<ReadObject | undefined> {
  const descriptor = orMissing(() => openSync(toFile(key), openToRead));
  if (descriptor === undefined) return undefined;
  try {
    const found = fstatSync(descriptor, { bigint: true });
    if (!found.isFile()) return undefined;
    requireReadable(key, Number(found.size), bytesMax);
    return { bytes: readFileSync(descriptor), revision: revisionOf(found) };
  } finally {
    closeSync(descriptor);
  }
}

/** A file that is written again is another one, with a time of its own should it get the number of the old one. */
function revisionOf({ ino, mtimeNs }: { readonly ino: bigint; readonly mtimeNs: bigint }): string {
  return `${ino}:${mtimeNs}`;
}

async function create(file: string, content: string | Uint8Array): Promise<boolean> {
  await makeFolder(dirname(file));
  return withTemporary(file, content, async (temporary) => {
    if ((await copy(temporary, file)).outcome !== "copied") return false;
    await syncFile(dirname(file));
    return true;
  });
}

async function replace(file: string, text: string, revision: string): Promise<boolean> {
  return withTemporary(file, text, async (temporary) => {
    const found = orMissing(() => lstatSync(file, { bigint: true }));
    if (found === undefined || revisionOf(found) !== revision) return false;
    await rename(temporary, file);
    await syncFile(dirname(file));
    return true;
  });
}

/** Writes a file beside another one, complete and synced (fsync), for as long as the work lasts. */
async function withTemporary<Result>(
  file: string,
  content: string | Uint8Array,
  work: (temporary: string) => Promise<Result>,
): Promise<Result> {
  const temporary = `${file}.${crypto.randomUUID()}.tmp`;
  try {
    await writeFile(temporary, content, { flush: true });
    return await work(temporary);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Makes a folder and its parents, with durable names. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFile(dirname(made));
}

async function removeUnchanged(file: string, { identity }: StoredObject): Promise<void> {
  if (find(file)?.identity === identity) orMissing(() => unlinkSync(file));
}

/** A folder that is deleted gets this name first: no location and no branch may have a backslash in its name. */
const deletedSuffix = "\\tiltyard-deleted";

/**
 * One rename removes the whole folder from its location. The deletion uses a name that no table has, so that a
 * process that was paused in the middle deletes nothing of the next table there.
 */
async function removeFolder(folder: string, proceed: () => void = () => {}): Promise<void> {
  const aside = `${folder}${deletedSuffix}`;
  await rm(aside, { recursive: true, force: true });
  proceed();
  try {
    renameSync(folder, aside);
  } catch (error) {
    if (isMissing(error)) return;
    // A mount point, or a parent that may not be changed: then it is deleted where it is.
    if (!["EBUSY", "EXDEV", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) throw error;
    await rm(folder, { recursive: true, force: true });
    return;
  }
  await syncFile(dirname(folder));
  await rm(aside, { recursive: true, force: true });
}

/** How many entries of a folder are read in one turn of the event loop. */
const entriesInTurn = 32;

async function* list(folder: string, before: string | undefined): AsyncIterable<ListedObject> {
  try {
    for await (const entry of inTurns(entriesOf(folder), entriesInTurn)) {
      const key = join(entry.parentPath, entry.name).slice(1);
      if (!entry.isFile() || (before !== undefined && key >= before)) continue;
      const found = find(toFile(key));
      if (found !== undefined) yield { key, ...found };
    }
  } catch (error) {
    if (isMissing(error)) return;
    throw unavailable(folder, error);
  }
}

/** Reads are synchronous, as look-ups are: most folders have few entries, and a thread would take longer. */
function* entriesOf(folder: string): Iterable<Dirent> {
  const entries = opendirSync(folder, { recursive: true });
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) yield entry;
  } finally {
    entries.closeSync();
  }
}

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
