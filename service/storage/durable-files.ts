import { closeSync, constants, fstatSync, fsync, lstatSync, openSync, type Stats } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { codeOf } from "@tiltyard/protocol";
import type { StoredObject } from "./object-store.ts";

const syncToDisk = promisify(fsync);
/** A pipe without a process at its other end is opened at once, too. */
export const openToRead = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** @returns undefined when there is no such file. */
export function findFile(file: string): StoredObject | undefined {
  // Most lookups find nothing, and an error costs more than the call.
  const found = orMissing(() => lstatSync(file, { throwIfNoEntry: false }));
  return found?.isFile() ? toStoredObject(found) : undefined;
}

/** Syncs a file and its name (fsync). @returns undefined when there is no such file. */
export async function persistFile(file: string): Promise<StoredObject | undefined> {
  const descriptor = orMissing(() => openSync(file, openToRead));
  if (descriptor === undefined) return undefined;
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) return undefined;
    await Promise.all([syncToDisk(descriptor), syncFile(dirname(file))]);
    return toStoredObject(found);
  } finally {
    closeSync(descriptor);
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

/** Creates a folder and its parents, with durable names. */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFile(dirname(made));
}

/** Writes a file beside another one, complete and synced (fsync), for as long as the work lasts. */
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
 * A hard link has the identity of its file. A reused inode number has another birth time, which nothing changes; some
 * file systems have no birth time.
 */
function toStoredObject({ ino, size, mtimeMs, birthtimeMs }: Stats): StoredObject {
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

/** Whether an error says that no such file exists. */
export function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(codeOf(error) ?? "");
}
