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
 */
export function createSqliteSession(database: Database.Database): Session {
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
      const statement = prepare(sql);
      if (statement.reader) return { rows: statement.all(...parameters) as Row[] };
      return { rows: [], numAffectedRows: BigInt(statement.run(...parameters).changes) };
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  return { db: createQueries("sqlite", withRecords(executeQuery)), now: sqlite.now };
}

/** The codes of an unavailable database; all other errors are bugs. */
const unavailable = /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM|LOCKED)/;

export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError) || !unavailable.test(error.code)) return error;
  return new CatalogError("ServiceUnavailable", "The catalog's database cannot be used now; try again.", {
    cause: error,
  });
}
