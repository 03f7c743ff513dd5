import { CatalogError } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import type { CompiledQuery, QueryResult } from "kysely";
import { LRUCache } from "lru-cache";
import { sqlite } from "./dialect.ts";
import { createQueries } from "./queries.ts";
import { withRecords } from "./records.ts";
import type { Session } from "./store.ts";

/** The number of statements in one turn of the event loop. Each runs for some tens of microseconds at most. */
const statementsInTurn = 256;
/** The number of prepared statements of a connection. The catalog has about 150, some with lists of several lengths. */
const preparedMax = 500;

/**
 * Creates a session on a connection, whose transactions the caller begins and ends. Its queries throw CatalogError
 * ServiceUnavailable if the database is unavailable.
 *
 * @param snapshot Begins a read transaction before the first query of a turn of the event loop.
 */
export function createSqliteSession(database: Database.Database, snapshot?: Snapshot): Session {
  const prepared = new LRUCache<string, Database.Statement>({ max: preparedMax });
  let statements = 0;

  function prepare(sql: string): Database.Statement {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const statement = database.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  }

  async function executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    statements += 1;
    // Long work yields to other requests.
    if (statements % statementsInTurn === 0) await new Promise(setImmediate);
    try {
      snapshot?.begin();
      const statement = prepare(sql);
      if (statement.reader) return { rows: statement.all(...parameters) as Row[] };
      return { rows: [], numAffectedRows: BigInt(statement.run(...parameters).changes) };
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  return { db: createQueries("sqlite", withRecords(executeQuery)), now: sqlite.now };
}

/**
 * A read transaction of one callback of the event loop, which begins with the first read. A request that arrives later
 * has another one, so that it sees every commit that other processes acknowledged before.
 */
export class Snapshot {
  readonly #reader: Database.Database;
  readonly #begin: Database.Statement;
  readonly #commit: Database.Statement;
  readonly #dataVersion: Database.Statement;
  #isOpen = false;
  #version: unknown;

  constructor(reader: Database.Database) {
    this.#reader = reader;
    this.#begin = reader.prepare("BEGIN");
    this.#commit = reader.prepare("COMMIT");
    this.#dataVersion = reader.prepare("PRAGMA data_version").pluck();
    // The first read opens the log. Open files remain readable after their deletion.
    this.#dataVersion.get();
  }

  begin(): void {
    if (this.#isOpen) return;
    this.#begin.run();
    this.#isOpen = true;
    queueMicrotask(this.end);
  }

  /** Returns a different value in each snapshot that sees further commits. */
  version(): unknown {
    this.begin();
    try {
      this.#version ??= this.#dataVersion.get();
    } catch (error) {
      throw asUnavailable(error);
    }
    return this.#version;
  }

  readonly end = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#version = undefined;
    try {
      this.#commit.run();
    } catch (error) {
      // SQLite itself ends the transaction when a read fails.
      if (this.#reader.inTransaction) throw error;
    }
  };
}

/** The codes of an unavailable database; all other errors are bugs. */
const unavailable = /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM|LOCKED)/;

export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError) || !unavailable.test(error.code)) return error;
  return new CatalogError("ServiceUnavailable", "The catalog's database cannot be used now; try again.", {
    cause: error,
  });
}
