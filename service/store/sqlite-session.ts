import { CatalogError } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import { sqlite } from "./dialect.ts";
import type { CompiledStatement, Statement } from "./statement.ts";
import type { LockableTable, Session } from "./store.ts";

/** The number of statements in one turn of the event loop. Each runs for some tens of microseconds at most. */
const statementsInTurn = 256;

/**
 * A read transaction of one turn of the event loop, which begins with the first read. The requests of the turn have
 * arrived by then, so each sees every commit that other processes acknowledged before.
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
    setImmediate(this.end);
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

export class SqliteSession implements Session {
  readonly locked: LockableTable | undefined;
  readonly #database: Database.Database;
  readonly #snapshot: Snapshot | undefined;
  #statementsSinceTurn = 0;
  readonly #prepared = new WeakMap<object, { compiled: CompiledStatement<object, unknown>; sql: Database.Statement }>();

  constructor(database: Database.Database, locked?: LockableTable, snapshot?: Snapshot) {
    this.locked = locked;
    this.#database = database;
    this.#snapshot = snapshot;
  }

  all<Parameters extends object, Row>(statement: Statement<Parameters, Row>, parameters: Parameters) {
    return this.#carryOut(statement, parameters, (sql, bound) => sql.all(...bound) as Row[]);
  }

  values<Parameters extends object, Value>(
    statement: Statement<Parameters, Readonly<Record<string, Value>>>,
    parameters: Parameters,
  ) {
    return this.#carryOut(statement, parameters, (sql, bound) => {
      try {
        return sql.pluck(true).all(...bound) as Value[];
      } finally {
        sql.pluck(false);
      }
    });
  }

  first<Parameters extends object, Row>(statement: Statement<Parameters, Row>, parameters: Parameters) {
    return this.#carryOut(statement, parameters, (sql, bound) => sql.get(...bound) as Row | undefined);
  }

  run<Parameters extends object>(statement: Statement<Parameters, unknown>, parameters: Parameters) {
    return this.#carryOut(statement, parameters, (sql, bound) => sql.run(...bound).changes);
  }

  /**
   * Runs a statement. Long work yields to other requests between its statements.
   *
   * @throws CatalogError ServiceUnavailable if the database is unavailable.
   */
  async #carryOut<Parameters extends object, Result>(
    statement: Statement<Parameters, unknown>,
    parameters: Parameters,
    work: (sql: Database.Statement, bound: readonly unknown[]) => Result,
  ): Promise<Result> {
    this.#statementsSinceTurn += 1;
    if (this.#statementsSinceTurn % statementsInTurn === 0) await new Promise(setImmediate);
    try {
      const { compiled, sql } = this.#prepare(statement);
      return work(sql, compiled.bind(parameters));
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  #prepare<Parameters extends object>(statement: Statement<Parameters, unknown>) {
    this.#snapshot?.begin();
    let found = this.#prepared.get(statement);
    if (found === undefined) {
      const compiled = statement.compile(sqlite) as CompiledStatement<object, unknown>;
      found = { compiled, sql: this.#database.prepare(compiled.sql) };
      this.#prepared.set(statement, found);
    }
    return found;
  }
}

/** The codes of an unavailable database; all other errors are bugs. */
const unavailable = /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM|LOCKED)/;

export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError) || !unavailable.test(error.code)) return error;
  return new CatalogError("ServiceUnavailable", "The catalog's database cannot be used now; try again.", {
    cause: error,
  });
}
