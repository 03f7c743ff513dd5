import Database from "better-sqlite3";
import { Memo } from "./memo.ts";
import { createMemoryLimiter } from "./memory-limiter.ts";
import { Snapshot, SqliteSession } from "./sqlite-session.ts";
import type { Store } from "./store.ts";
import { WriterNeeded } from "./writer-needed.ts";

/**
 * Opens a SQLite file that another process has brought up to date and writes. What is to be changed throws WriterNeeded:
 * this process never waits for the lock of those that write.
 */
export function openSqliteReader(file: string): Store {
  const reader = new Database(file, { readonly: true, fileMustExist: true });
  const snapshot = new Snapshot(reader);
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
