import Database from "better-sqlite3";
import { Memo } from "./memo.ts";
import { createMemoryLimiter } from "./memory-limiter.ts";
import { namingFile, requireFile } from "./sqlite-file.ts";
import { Snapshot, SqliteSession } from "./sqlite-session.ts";
import type { Store } from "./store.ts";
import { WriterNeeded } from "./writer-needed.ts";

/**
 * Opens a SQLite file that another process has brought up to date and writes. What is to be changed throws WriterNeeded:
 * this process never waits for the lock of those that write.
 *
 * @throws Error that names the file when it is gone, or SQLite cannot use it.
 */
export function openSqliteReader(file: string): Store {
  requireFile(file);
  const { reader, snapshot } = open(file);
  const memo = new Memo(snapshot);
  return {
    read: new SqliteSession(reader, undefined, snapshot),
    memoized: (key, make) => memo.text(key, make),
    write: () => Promise.reject(new WriterNeeded()),
    createLimiter: createMemoryLimiter,
    [Symbol.asyncDispose]: async () => {
      snapshot.end();
      reader.close();
    },
  };
}

function open(file: string) {
  try {
    const reader = new Database(file, { readonly: true, fileMustExist: true });
    return { reader, snapshot: new Snapshot(reader) };
  } catch (error) {
    throw namingFile(file, error);
  }
}
