import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { messageOf } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import { cannotUse, isNewSqliteFile } from "./database.ts";

/** Requires an intact catalog database. @param shown Its name in the error. @throws Error */
export function verifySqliteFile(file: string, shown = file): void {
  let problem: unknown;
  try {
    const database = new Database(file, { readonly: true, fileMustExist: true });
    try {
      problem = database.pragma("integrity_check", { simple: true });
      if (problem === "ok") database.prepare("select count(*) from table_versions").get();
    } finally {
      database.close();
    }
  } catch (error) {
    problem = messageOf(error);
  }
  if (problem !== "ok") throw new Error(`${shown} is not a catalog database that can be used: ${problem}`);
}

/**
 * Writes a consistent copy of a database that may be in use, including its write-ahead log. The copy appears under its
 * final name only when it is complete, verified and synced.
 *
 * @param place Moves the finished copy from its temporary name to its final one.
 * @throws Error if the file is not an intact catalog database.
 */
export async function copySqliteFile<Result>(file: string, copy: string, place: (partial: string) => Result) {
  const partial = `${copy}.partial`;
  try {
    // Other users must not read the copy before it has the access of the database.
    rmSync(partial, { force: true });
    createForOwner(partial);
    await copyPages(file, partial);
    copyAccess(file, partial);
    // A copy in WAL mode would create files next to it at every read.
    closeForGood(partial);
    verifySqliteFile(partial, file);
    sync(partial);
    const result = place(partial);
    sync(dirname(copy));
    return result;
  } finally {
    for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${partial}${suffix}`, { force: true });
  }
}

const ownerOnly = 0o600;

/** Creates a database that only its owner may read. SQLite creates the files next to it with the same permissions. */
export function createForOwner(file: string): void {
  writeFileSync(file, "", { mode: ownerOnly, flag: "a" });
}

/** Copies the permissions of a database, and its owner if the caller is root. */
function copyAccess(file: string, copy: string): void {
  const { mode, uid, gid } = statSync(file);
  chmodSync(copy, mode | ownerOnly);
  if (process.getuid?.() === 0) chownSync(copy, uid, gid);
}

async function copyPages(file: string, copy: string): Promise<void> {
  const database = new Database(file, { readonly: true, fileMustExist: true });
  try {
    await database.backup(copy);
  } catch (error) {
    throw new Error(`${file} cannot be copied to ${copy}: ${messageOf(error)}`, { cause: error });
  } finally {
    database.close();
  }
}

/** Replaces an unused database. @returns The path at which the former one is kept; undefined without one. */
export function replaceSqliteFile(file: string, by: string): string | undefined {
  const kept = `${file}${keptInfix}${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
  const isPresent = existsSync(file);
  if (isPresent) {
    closeIfIntact(file);
    copyAccess(file, by);
    keep(file, kept);
  }
  for (const suffix of ["-wal", "-shm"])
    if (existsSync(`${file}${suffix}`)) renameSync(`${file}${suffix}`, `${kept}${suffix}`);
  renameSync(by, file);
  return isPresent ? kept : undefined;
}

/** Links a database to a second name, if the file system can, so that its first name always exists. */
function keep(file: string, kept: string): void {
  try {
    linkSync(file, kept);
  } catch {
    renameSync(file, kept);
  }
}

/** Closes a database like `closeForGood`, unless it is damaged. @throws Error if another process has it open. */
export function closeIfIntact(file: string): void {
  try {
    closeForGood(file);
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
  }
}

const keptInfix = ".before-restore-";

/** Rejects a new database next to the files of a former one. @throws Error if such files exist. */
export function requireNoRemains(file: string): void {
  if (!isNewSqliteFile(file) || !existsSync(dirname(file))) return;
  const name = basename(file);
  const remains = readdirSync(dirname(file)).filter(
    (each) => each === `${name}-wal` || each.startsWith(`${name}${keptInfix}`),
  );
  if (remains.length === 0) return;
  const problem =
    `it is missing or empty, but ${remains.join(", ")} of a former database is next to it. ` +
    "Restore a backup with tiltyard-catalog restore, or move these files away to start an empty catalog.";
  throw cannotUse(file, new Error(problem));
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Checkpoints the log and leaves WAL mode, so that the file can be moved. @throws Error if it is in use. */
export function closeForGood(file: string): void {
  const database = new Database(file, { timeout: 0 });
  try {
    // SQLite leaves WAL mode only while no other connection has the file open.
    database.pragma("journal_mode = DELETE");
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY"))
      throw new Error(`${file} is in use: stop the service first`);
    throw error;
  } finally {
    database.close();
  }
}
