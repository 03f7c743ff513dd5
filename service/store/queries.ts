import {
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { Schema } from "./schema.ts";

/** Runs a compiled query. */
export type RunQuery = DatabaseConnection["executeQuery"];

/** Creates an instance of Kysely that passes its queries to a function. Transactions begin and end without Kysely. */
export function createQueries(dialect: "sqlite" | "postgres", executeQuery: RunQuery): Kysely<Schema> {
  const createDriver = () => new QueryDriver(executeQuery);
  if (dialect === "postgres")
    return new Kysely<Schema>({
      dialect: {
        createDriver,
        createAdapter: () => new PostgresAdapter(),
        createIntrospector: (db) => new PostgresIntrospector(db),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    });
  return new Kysely<Schema>({
    dialect: {
      createDriver,
      createAdapter: () => new SynchronousAdapter(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new PlannedOnceCompiler(),
    },
  });
}

class QueryDriver extends DummyDriver {
  readonly #connection: DatabaseConnection;

  constructor(executeQuery: RunQuery) {
    super();
    const streamQuery = () => {
      throw new Error("the catalog streams no queries");
    };
    this.#connection = { executeQuery, streamQuery };
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection;
  }
}

/** An adapter without Kysely's lock on the connection: a query of better-sqlite3 runs without interruption. */
class SynchronousAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/**
 * A compiler whose placeholders have the default collation. SQLite plans a prepared statement again for each run if its
 * planner has read a bound value, which lasts longer than most runs. It does not read the values of such placeholders.
 */
class PlannedOnceCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return "(? collate binary)";
  }
}
