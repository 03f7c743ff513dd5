import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import pRetry from "p-retry";
import { isNewSqliteFile, noDatabase } from "./database.ts";
import { sqlite } from "./dialect.ts";
import { createMemoryLimiter } from "./memory-limiter.ts";
import { isMigrated, migrate } from "./migrate.ts";
import { ReadCache } from "./read-cache.ts";
import { asUnavailable, createSqliteSession } from "./sqlite-driver.ts";
import { namingFile, requireNoRemains } from "./sqlite-file.ts";
import type { Session, Store, WriteOptions } from "./store.ts";

/** The maximum number of transactions that share one commit. */
const groupSizeMax = 256;
const busyTimeoutMs = 5_000;
/** The retries of a start that waits for the migration of another process. */
const migrationRetries = { retries: Number.POSITIVE_INFINITY, factor: 1, minTimeout: 20, maxRetryTime: 60_000 };
/**
 * Opens the SQLite file, creates it if it is missing, and migrates its schema.
 *
 * @throws Error with the name of the file if SQLite cannot use it, or if it is missing and must exist.
 */
export async function openSqliteStore(
  file: string,
  { mustExist = false }: { readonly mustExist?: boolean } = {},
): Promise<Store> {
  requireNoRemains(file);
  if (mustExist && isNewSqliteFile(file)) throw noDatabase(file);
  try {
    return await open(file);
  } catch (error) {
    throw namingFile(file, error);
  }
}

async function open(file: string): Promise<Store> {
  mkdirSync(dirname(file), { recursive: true });
  const writer = new Database(file, { timeout: busyTimeoutMs });
  try {
    writer.pragma("journal_mode = WAL");
    writer.pragma("synchronous = FULL");
    writer.pragma("foreign_keys = ON");
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
  await beginAlone(writer);
  try {
    await migrate(db, sqlite);
    writer.exec("COMMIT");
  } catch (error) {
    if (writer.inTransaction) writer.exec("ROLLBACK");
    throw error;
  }
}

/**
 * Begins the transaction of a migration after that of another process. SQLite itself would block the event loop while
 * it waits.
 */
async function beginAlone(writer: Database.Database): Promise<void> {
  writer.pragma("busy_timeout = 0");
  await pRetry(async () => void writer.exec("BEGIN IMMEDIATE"), {
    ...migrationRetries,
    shouldRetry: ({ error }) => error instanceof Database.SqliteError && error.code === "SQLITE_BUSY",
  });
  writer.pragma(`busy_timeout = ${busyTimeoutMs}`);
}

interface Job {
  readonly work: () => Promise<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly job: Job } & ({ readonly result: unknown } | { readonly error: unknown });

/**
 * A store with one connection for reads and one for writes. Transactions that arrive together share one COMMIT (group
 * commit), because its fsync costs more than everything else. Each read sees all commits, also those of other processes.
 */
class SqliteStore implements Store {
  readonly read: Session;
  readonly createLimiter = createMemoryLimiter;
  readonly #cache: ReadCache;
  readonly #reader: Database.Database;
  readonly #writer: Database.Database;
  readonly #session: Session;
  readonly #queue: Job[] = [];
  readonly #logInode: number | undefined;
  #committing: Promise<void> | undefined;

  constructor(writer: Database.Database, reader: Database.Database) {
    this.#writer = writer;
    this.#reader = reader;
    this.#session = createSqliteSession(writer);
    this.#logInode = inodeOfLog(writer);
    this.#cache = new ReadCache(reader);
    this.read = createSqliteSession(reader);
  }

  cached<Result extends object>(key: string, read: () => Promise<Result>): Promise<Result> {
    return this.#cache.read(key, read);
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

  async #commitGroup(group: readonly Job[]): Promise<void> {
    const outcomes: Outcome[] = [];
    try {
      this.#requireLog();
      this.#writer.exec("BEGIN IMMEDIATE");
      for (const job of group) outcomes.push(await this.#runInSavepoint(job));
      this.#writer.exec("COMMIT");
    } catch (error) {
      const failure = asUnavailable(error);
      for (const job of group) job.reject(failure);
      if (this.#writer.inTransaction) this.#writer.exec("ROLLBACK");
      return;
    }
    for (const outcome of outcomes)
      if ("error" in outcome) outcome.job.reject(outcome.error);
      else outcome.job.resolve(outcome.result);
  }

  /**
   * Requires the log. @throws CatalogError ServiceUnavailable if it was deleted, because SQLite would still commit to
   * the deleted file.
   */
  #requireLog(): void {
    if (inodeOfLog(this.#writer) !== this.#logInode) throw fileGone(this.#writer.name);
  }

  async #runInSavepoint(job: Job): Promise<Outcome> {
    this.#writer.exec("SAVEPOINT request");
    try {
      const result = await job.work();
      this.#writer.exec("RELEASE request");
      return { job, result };
    } catch (error) {
      // SQLite rolls back the whole transaction on errors such as a full disk. Then the whole group fails.
      if (!this.#writer.inTransaction) throw error;
      this.#writer.exec("ROLLBACK TO request");
      this.#writer.exec("RELEASE request");
      return { job, error };
    }
  }
}

function inodeOfLog({ name }: Database.Database): number | undefined {
  return statSync(`${name}-wal`, { throwIfNoEntry: false })?.ino;
}

function fileGone(file: string): CatalogError {
  return new CatalogError(
    "ServiceUnavailable",
    "The database of the catalog was deleted. The catalog does not commit any more.",
    {
      cause: new Error(
        `${file} was deleted or replaced while the catalog had it open: stop the catalog, restore a backup and start it again`,
      ),
    },
  );
}
