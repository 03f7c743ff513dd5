import { existsSync } from "node:fs";
import { messageOf } from "@tiltyard/protocol";
import Database from "better-sqlite3";

/** @throws Error when there is no such file. */
export function requireFile(file: string): void {
  if (!existsSync(file)) throw cannotUse(file, "it is gone, restore a backup");
}

/** Adds the name of the file to an error of SQLite; returns any other error unchanged. */
export function namingFile(file: string, error: unknown): unknown {
  return error instanceof Database.SqliteError ? cannotUse(file, error.message, error) : error;
}

function cannotUse(file: string, problem: string, cause?: unknown): Error {
  return new Error(`The catalog cannot use its database at ${file}: ${problem}`, { cause });
}

/** @throws Error when the file is not an intact catalog database. */
export function verifySqliteFile(file: string): void {
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
  if (problem !== "ok") throw new Error(`${file} is not a catalog database that can be used: ${problem}`);
}

/**
 * Writes a consistent copy of a database that may be in use.
 *
 * @throws Error when there is no such database.
 */
export async function backupSqliteFile(file: string, copy: string): Promise<void> {
  if (!existsSync(file)) throw new Error(`there is no database at ${file}`);
  const database = new Database(file, { readonly: true });
  try {
    await database.backup(copy);
  } finally {
    database.close();
  }
}

/**
 * Checkpoints the log into the database file and leaves WAL mode, so that the file can be moved.
 *
 * @throws Error when another process has the database open.
 */
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
