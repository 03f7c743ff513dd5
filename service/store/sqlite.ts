import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import pRetry from "p-retry";
import { cannotUse, isNewSqliteFile } from "./database.ts";
import { sqlite } from "./dialect.ts";
import { isMigrated, migrate } from "./migrate.ts";
import { asUnavailable, createSqliteSession, ReadCache } from "./sqlite-driver.ts";
import { createForOwner, requireNoRemains } from "./sqlite-file.ts";
import { createMemoryLimiter, type Session, type Store, type WriteOptions } from "./store.ts";

const groupSizeMax = 256;
const busyTimeoutMs = 5_000;
const migrationTimeoutMs = 60_000;

/** Opens or creates the SQLite file and migrates it. @throws Error with its name if it cannot be used. */
export async function openSqliteStore(file: string): Promise<Store> {
  requireNoRemains(file);
  try {
    return await open(file);
  } catch (error) {
    throw cannotUse(file, error);
  }
}

async function open(file: string): Promise<Store> {
  mkdirSync(dirname(file), { recursive: true });
  if (isNewSqliteFile(file)) createForOwner(file);
  const writer = new Database(file, { timeout: busyTimeoutMs });
  try {
    writer.pragma("journal_mode = WAL");
    writer.pragma("synchronous = FULL");
    writer.pragma("foreign_keys = ON");
    // SQLite's own wait would block the event loop. A transaction of another store in this process would never end.
    writer.pragma("busy_timeout = 0");
    await migrateAlone(writer);
    return new SqliteStore(writer, new Database(file, { timeout: busyTimeoutMs, readonly: true }));
  } catch (error) {
    writer.close();
    throw error;
  }
}

/** Migrates the schema in one transaction and excludes all other processes. */
async function migrateAlone(writer: Database.Database): Promise<void> {
  // Destroying this Kysely instance would close the connection.
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: writer }) });
  if (await isMigrated(db)) return;
  await begin(writer, migrationTimeoutMs);
  try {
    await migrate(db, sqlite);
    writer.exec("COMMIT");
  } catch (error) {
    if (writer.inTransaction) writer.exec("ROLLBACK");
    throw error;
  }
}

async function begin(writer: Database.Database, maxRetryTime: number): Promise<void> {
  await pRetry(async () => void writer.exec("BEGIN IMMEDIATE"), {
    retries: Number.POSITIVE_INFINITY,
    factor: 1,
    minTimeout: 20,
    maxRetryTime,
    shouldRetry: ({ error }) => error instanceof Database.SqliteError && error.code === "SQLITE_BUSY",
  });
}

interface QueuedTransaction {
  readonly work: () => Promise<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A store with one connection for reads and one for writes. Transactions that arrive together share one COMMIT (group
 * commit), because its fsync costs more than everything else. Each read sees all commits, also those of other processes.
 */
class SqliteStore implements Store {
  readonly read: Session;
  readonly createLimiter = createMemoryLimiter;
  readonly #reader: Database.Database;
  readonly #writer: Database.Database;
  readonly #session: Session;
  readonly #cache: ReadCache;
  readonly #queue: QueuedTransaction[] = [];
  readonly #inodes: readonly (number | undefined)[];
  #committing: Promise<void> | undefined;

  constructor(writer: Database.Database, reader: Database.Database) {
    this.#writer = writer;
    this.#reader = reader;
    this.#session = createSqliteSession(writer);
    this.#inodes = inodesOf(writer);
    this.#cache = new ReadCache(reader);
    this.read = { ...createSqliteSession(reader), cached: this.#cache.cached };
  }

  /** Runs a transaction. Transactions run one at a time, which has the effect of locking every table. */
  write<Result>(work: (session: Session) => Promise<Result>, { locking }: WriteOptions = {}): Promise<Result> {
    const session = { ...this.#session, locked: locking };
    return new Promise<unknown>((resolve, reject) => {
      this.#queue.push({ work: () => work(session), resolve, reject });
      this.#committing ??= this.#commitGroups();
    }) as Promise<Result>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#committing;
    this.#reader.close();
    this.#writer.close();
  }

  async #commitGroups(): Promise<void> {
    while (this.#queue.length > 0) {
      // Transactions of the same turn of the event loop join the group, and reads run between groups.
      await new Promise(setImmediate);
      const group = this.#queue.splice(0, groupSizeMax);
      await this.#commitGroup(group);
    }
    this.#committing = undefined;
  }

  async #commitGroup(group: readonly QueuedTransaction[]): Promise<void> {
    const settlements: (() => void)[] = [];
    try {
      this.#requireFiles();
      await begin(this.#writer, busyTimeoutMs);
      for (const transaction of group) settlements.push(await this.#runInSavepoint(transaction));
      this.#writer.exec("COMMIT");
      this.#cache.expire();
    } catch (error) {
      const failure = asUnavailable(error);
      for (const { reject } of group) reject(failure);
      if (this.#writer.inTransaction) this.#writer.exec("ROLLBACK");
      return;
    }
    for (const settle of settlements) settle();
  }

  /** Requires the files, without which SQLite would commit to deleted ones. @throws CatalogError ServiceUnavailable */
  #requireFiles(): void {
    const present = inodesOf(this.#writer);
    if (present.some((inode, index) => inode !== this.#inodes[index])) throw fileGone(this.#writer.name);
  }

  /** @returns A function that settles the transaction after the commit of its group. */
  async #runInSavepoint({ work, resolve, reject }: QueuedTransaction): Promise<() => void> {
    this.#writer.exec("SAVEPOINT request");
    try {
      const result = await work();
      this.#writer.exec("RELEASE request");
      return () => resolve(result);
    } catch (error) {
      // SQLite rolls back the whole transaction on errors such as a full disk. Then the whole group fails.
      if (!this.#writer.inTransaction) throw error;
      this.#writer.exec("ROLLBACK TO request");
      this.#writer.exec("RELEASE request");
      return () => reject(error);
    }
  }
}

/** Returns the inodes of a database file and its log. A missing file has none. */
function inodesOf({ name }: Database.Database): readonly (number | undefined)[] {
  return [name, `${name}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.ino);
}

function fileGone(file: string): CatalogError {
  return new CatalogError(
    "ServiceUnavailable",
    "The database of the catalog was deleted or moved. The catalog does not commit any more.",
    {
      cause: new Error(
        `${file}, or its -wal file, was deleted, moved or replaced while the catalog had it open. All acknowledged ` +
          "changes are still in the open files: move the files back, or copy them from /proc/PID/fd before the catalog " +
          "stops. Otherwise stop it, restore a backup and start it again",
      ),
    },
  );
}
