import { existsSync } from "node:fs";
import Database from "better-sqlite3";

/** @throws Error when the file is not a whole catalog database. */
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
    problem = error instanceof Error ? error.message : error;
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
 * Keeps other processes from serving a database, until the claim is disposed of or the process
 * ends in any way. Commands may still use the database: the claim is the lock of a file beside it.
 *
 * @throws Error when another process serves the database.
 */
export function claimSqliteFile(file: string): Disposable {
  const lock = new Database(`${file}-lock`, { timeout: 0 });
  try {
    lock.exec("begin exclusive");
    return { [Symbol.dispose]: () => lock.close() };
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    const remedy = "stop it, or use PostgreSQL, which several processes may serve";
    throw new Error(`${file} is served by another process: ${remedy}`);
  }
}

/**
 * Brings all that was committed into the database file itself, so that it can be moved.
 *
 * @throws Error when another process has the database open.
 */
export function closeForGood(file: string): void {
  const database = new Database(file, { timeout: 0 });
  try {
    // SQLite leaves the WAL mode only for a connection that has the file to itself.
    database.pragma("journal_mode = DELETE");
  } catch (error) {
    if (isBusy(error)) throw new Error(`${file} is in use: stop the service first`);
    throw error;
  } finally {
    database.close();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY");
}
