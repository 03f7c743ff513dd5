import { hash } from "node:crypto";
import { linkSync, lstatSync, renameSync, unlinkSync } from "node:fs";
import { copyFile, opendir, rename, rm, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf } from "@tiltyard/protocol";
import {
  createFolder,
  findFile,
  isMissing,
  orMissing,
  readFile,
  revisionOf,
  syncFile,
  withTemporary,
} from "./durable-files.ts";
import { createLinkCheck } from "./links.ts";
import {
  type Copied,
  type ListedObject,
  type ObjectStore,
  orUnavailable,
  requireReadable,
  type StoredObject,
  unavailable,
} from "./object-store.ts";

/**
 * Opens the local file system, or a file system that every replica mounts. Calls that only read or change metadata are
 * synchronous, because they need only microseconds, less than a transfer to a thread. Calls that wait for the disk are
 * asynchronous.
 *
 * @param rootPaths The absolute paths of the folders that may contain tables. Paths in them must not lead elsewhere
 * through a link; commits and deletions check this before they begin.
 */
export function openFileStore(rootPaths: readonly string[] = []): ObjectStore {
  const requireNoLink = createLinkCheck(rootPaths);
  /** Runs work at a path without links to other folders. */
  const inside = <Result>(key: string, path: string, work: () => Promise<Result>) =>
    orUnavailable(key, async () => {
      requireNoLink(path);
      return work();
    });
  const read = (key: string, bytesMax: number | undefined, sync: boolean) =>
    inside(key, toFile(key), () => readFile(toFile(key), (size) => requireReadable(key, size, bytesMax), sync));
  return {
    libraryOptions: {},
    find: (key) => orUnavailable(key, async () => findFile(toFile(key))),
    persist: (key, bytesMax) => read(key, bytesMax, true),
    copy: (from, to, replaced) =>
      orUnavailable(to, () =>
        replaced === undefined ? copy(toFile(from), toFile(to)) : moveOver(toFile(from), toFile(to), replaced),
      ),
    syncFolder: (folder) => orUnavailable(folder, () => syncFile(toFile(folder))),
    read: (key, bytesMax) => read(key, bytesMax, false),
    create: (key, content) => inside(key, dirname(toFile(key)), () => create(toFile(key), content)),
    replace: (key, text, revision) => inside(key, toFile(key), () => replace(toFile(key), text, revision)),
    delete: (key, only) => orUnavailable(key, () => remove(toFile(key), only)),
    list: (folder, before) => list(toFile(folder), before),
    deleteFolder: (folder, proceed) => inside(folder, toFile(folder), () => removeFolder(toFile(folder), proceed)),
  };
}

/** Links a file under a second name, which appears atomically. File systems without hard links copy its content instead. */
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
 * Renames a file over another one. This process does nothing else between the lookup and the rename, and a slower
 * process no longer has a file to rename.
 */
async function moveOver(from: string, to: string, replaced: StoredObject): Promise<Copied> {
  const there = findFile(to);
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

/** Copies the content. It is complete and synced (fsync) before its name appears. */
async function copyContent(from: string, to: string): Promise<Copied> {
  const temporary = `${to}.${crypto.randomUUID()}.tmp`;
  await copyFile(from, temporary);
  try {
    await syncFile(temporary);
    // Without hard links, no rename preserves an existing file, and this check is the best approximation.
    if (findFile(to) !== undefined) return { outcome: "exists" };
    await rename(temporary, to);
  } finally {
    await rm(temporary, { force: true });
  }
  return { outcome: "copied", identity: findFile(to)?.identity };
}

async function create(file: string, content: string | Uint8Array): Promise<boolean> {
  await createFolder(dirname(file));
  return withTemporary(file, content, async (temporary) => {
    if ((await copy(temporary, file)).outcome !== "copied") return false;
    await syncFile(dirname(file));
    return true;
  });
}

async function replace(file: string, text: string, revision: string): Promise<boolean> {
  return withTemporary(file, text, async (temporary) => {
    const found = orMissing(() => lstatSync(file));
    if (found === undefined || revisionOf(found) !== revision) return false;
    await rename(temporary, file);
    await syncFile(dirname(file));
    return true;
  });
}

async function remove(file: string, only: StoredObject | undefined): Promise<void> {
  if (only !== undefined) {
    if (findFile(file)?.identity === only.identity) orMissing(() => unlinkSync(file));
    return;
  }
  await unlink(file).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
}

/**
 * Returns the name under which a folder is deleted, beside it. The hash fits where the folder's own name has the maximum
 * length. Names of locations and branches contain no backslash.
 */
function deletedName(folder: string): string {
  return join(dirname(folder), `${hash("sha256", basename(folder))}\\tiltyard-deleted`);
}

/**
 * Removes a folder from its location by one rename and deletes it under a name that no table has. A process that was
 * paused during the deletion thus deletes nothing of the next table at the location.
 */
async function removeFolder(folder: string, proceed: () => void = () => {}): Promise<void> {
  const aside = deletedName(folder);
  await rm(aside, { recursive: true, force: true });
  proceed();
  try {
    renameSync(folder, aside);
  } catch (error) {
    if (isMissing(error)) return;
    // The folder is a mount point or its parent is read-only, so its content is deleted in place.
    if (!["EBUSY", "EXDEV", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) throw error;
    await rm(folder, { recursive: true, force: true });
    return;
  }
  await syncFile(dirname(folder));
  await rm(aside, { recursive: true, force: true });
}

async function* list(folder: string, before: string | undefined): AsyncIterable<ListedObject> {
  try {
    for await (const entry of await opendir(folder, { recursive: true })) {
      const key = join(entry.parentPath, entry.name).slice(1);
      if (!entry.isFile() || (before !== undefined && key >= before)) continue;
      const found = findFile(toFile(key));
      if (found !== undefined) yield { key, ...found };
    }
  } catch (error) {
    if (isMissing(error)) return;
    throw unavailable(folder, error);
  }
}

function toFile(key: string): string {
  return `/${key}`;
}
