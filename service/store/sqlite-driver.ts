import { CatalogError } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import type { KyselyPlugin, SqliteStatement } from "kysely";
import { LRUCache } from "lru-cache";
import { sqlite } from "./dialect.ts";
import { createQueries, SqliteRecordsDialect } from "./queries.ts";
import { type Session, uncached } from "./store.ts";

/** The number of statements in one turn of the event loop. Each runs for some tens of microseconds at most. */
const statementsInTurn = 64;
/** The number of prepared statements of a connection. The catalog has about 150, some with lists of several lengths. */
const preparedMax = 500;

/**
 * Creates a session on a connection, without transactions and without a cache.
 *
 * @throws CatalogError ServiceUnavailable, by queries.
 */
export function createSqliteSession(connection: Database.Database): Session {
  const prepared = new LRUCache<string, SqliteStatement>({ max: preparedMax });
  const database = {
    prepare: (sql: string) => {
      const statement = prepared.get(sql) ?? prepare(connection, sql);
      prepared.set(sql, statement);
      return statement;
    },
    close: () => undefined,
  };
  const db = createQueries(new SqliteRecordsDialect({ database }), createYielding());
  return { ...sqlite, db, time: () => Date.now(), cached: uncached };
}

function prepare(connection: Database.Database, sql: string): SqliteStatement {
  const statement = orUnavailable(() => connection.prepare(sql));
  return {
    reader: statement.reader,
    all: (parameters) => orUnavailable(() => statement.all(parameters)),
    run: (parameters) => orUnavailable(() => statement.run(parameters)),
    iterate: (parameters) => statement.iterate(parameters) as IterableIterator<unknown>,
  };
}

/** Creates a plugin with which long work yields to other requests. */
function createYielding(): KyselyPlugin {
  let statements = 0;
  return {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      statements += 1;
      if (statements % statementsInTurn === 0) await new Promise(setImmediate);
      return result;
    },
  };
}

function orUnavailable<Result>(run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw asUnavailable(error);
  }
}

/** The codes of a database that is unavailable or damaged; all other errors are bugs. */
const unavailable = /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM|LOCKED|CORRUPT|NOTADB)/;

const damaged = /^SQLITE_(CORRUPT|NOTADB)/;

export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError) || !unavailable.test(error.code)) return error;
  const problem = damaged.test(error.code)
    ? "The catalog's database is damaged: its operator must restore a backup."
    : "The catalog's database cannot be used now; try again.";
  return new CatalogError("ServiceUnavailable", problem, { cause: error });
}

/** The maximum number of characters of all results as JSON. A character occupies one or two bytes. */
const charactersKept = 8 * 1024 * 1024;

/**
 * Caches results of reads until the next commit of any process, which SQLite's `data_version` reveals. Reading a table
 * again would be a sixth of the work of its description, and reading a page of 1,000 names lasts three times as long as
 * everything else in its request.
 */
export class ReadCache {
  readonly #results = new LRUCache<string, object>({
    maxSize: charactersKept,
    sizeCalculation: (result, key) => JSON.stringify(result).length + key.length,
  });
  readonly #dataVersion: Database.Statement;
  #version: unknown;
  #isCurrent = false;

  constructor(reader: Database.Database) {
    this.#dataVersion = reader.prepare("PRAGMA data_version").pluck();
    // The first read opens the log. Open files remain readable after their deletion.
    this.#version = this.#readVersion();
  }

  readonly cached: Session["cached"] = <Result extends object | undefined>(
    key: string,
    read: () => Promise<Result>,
  ) => {
    this.#forgetOutdated();
    const known = this.#results.get(key) as Result;
    return known === undefined ? this.#keep(key, read) : Promise.resolve(known);
  };

  /** Notices a commit of this process, whose results must be visible at once. */
  expire(): void {
    this.#isCurrent = false;
  }

  async #keep<Result extends object | undefined>(key: string, read: () => Promise<Result>): Promise<Result> {
    const version = this.#version;
    const result = await read();
    // A commit during the reads may be in a part of the result.
    if (result !== undefined && this.#readVersion() === version) this.#results.set(key, result);
    return result;
  }

  /**
   * Compares the versions only once in each iteration of the event loop, because that takes longer than all other steps of
   * a cached read. Requests run as immediates, in the order of their arrival, so a request that arrives after the
   * comparison runs after its expiry.
   */
  #forgetOutdated(): void {
    if (this.#isCurrent) return;
    const version = this.#readVersion();
    if (version !== this.#version) this.#results.clear();
    this.#version = version;
    this.#isCurrent = true;
    setImmediate(() => this.expire());
  }

  /** Returns a different value after each commit of another connection, and thus after each commit. */
  #readVersion(): unknown {
    return orUnavailable(() => this.#dataVersion.get());
  }
}
