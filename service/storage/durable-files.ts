import { closeSync, constants, fstatSync, fsync, lstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { codeOf } from "@tiltyard/protocol";
import type { StoredObject } from "./object-store.ts";

const syncToDisk = promisify(fsync);
/** The flags to open a file for reading. Non-blocking mode also opens a pipe without a writer immediately. */
const openToRead = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Finds a file. @returns undefined if it does not exist. */
export function findFile(file: string): StoredObject | undefined {
  // Most lookups find nothing, and an exception is more expensive than the call.
  const found = orMissing(() => lstatSync(file, { throwIfNoEntry: false }));
  return found?.isFile() ? toStoredObject(found) : undefined;
}

/** Reads a file. @param sync Also syncs the file and its name (fsync). @returns undefined if it does not exist. */
export async function readFile(file: string, requireSize: (sizeBytes: number) => void, sync = false) {
  const descriptor = orMissing(() => openSync(file, openToRead));
  if (descriptor === undefined) return undefined;
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) return undefined;
    requireSize(found.size);
    const bytes = readFileSync(descriptor);
    if (sync) await Promise.all([syncToDisk(descriptor), syncFile(dirname(file))]);
    return { ...toStoredObject(found), bytes, revision: revisionOf(found) };
  } finally {
    closeSync(descriptor);
  }
}

/** Syncs a file, or a folder with the names in it (fsync). */
export async function syncFile(file: string): Promise<void> {
  const descriptor = openSync(file, openToRead);
  try {
    await syncToDisk(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Creates a folder and its parents with durable names. */
export async function createFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFile(dirname(made));
}

/** Writes a complete and synced (fsync) temporary file next to another one and deletes it after the work. */
export async function withTemporary<Result>(
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

/**
 * Converts the metadata of a file. A hard link has the identity of its file. A reused inode number has a different
 * birth time, which never changes; some file systems have no birth time.
 */
function toStoredObject({ ino, size, mtimeMs, birthtimeMs }: Stats): StoredObject {
  return { identity: `${ino}:${size}:${birthtimeMs || mtimeMs}`, modifiedAtMillis: mtimeMs, sizeBytes: size };
}

/** Returns the revision of a file. A rewritten file is a new file, whose time differs even if its inode number is reused. */
export function revisionOf({ ino, mtimeMs }: Stats): string {
  return `${ino}:${mtimeMs}`;
}

export function orMissing<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Reports whether an error means that a file does not exist. */
export function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(codeOf(error) ?? "");
}
