import {
  type Compilable,
  type CompiledQuery,
  DefaultQueryExecutor,
  type Dialect,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { type RunQuery, toColumn } from "./records.ts";
import type { Schema } from "./schema.ts";
import type { Session } from "./store.ts";

/**
 * Creates an instance of Kysely that passes its queries to a function. Transactions begin and end without Kysely, whose
 * own management of connections costs more than a read of SQLite.
 */
export function createQueries(name: keyof typeof dialects, executeQuery: RunQuery): Kysely<Schema> {
  const dialect = dialects[name];
  const streamQuery = () => {
    throw new Error("the catalog streams no queries");
  };
  const connection = { executeQuery, streamQuery };
  const executor = new DefaultQueryExecutor(dialect.createQueryCompiler(), dialect.createAdapter(), {
    provideConnection: (run) => run(connection),
  });
  return new Kysely<Schema>({ config: { dialect }, dialect, driver: dialect.createDriver(), executor });
}

/**
 * A compiler whose placeholders have the default collation. SQLite plans a prepared statement again for each run if its
 * planner has read a bound value, which lasts longer than most runs. It does not read the values of such placeholders.
 */
class PlannedOnceCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return "(? collate binary)";
  }

  protected override sanitizeIdentifier(name: string): string {
    return super.sanitizeIdentifier(toColumn(name));
  }
}

class PostgresCompiler extends PostgresQueryCompiler {
  protected override sanitizeIdentifier(name: string): string {
    return super.sanitizeIdentifier(toColumn(name));
  }
}

const dialects = {
  sqlite: {
    createDriver: () => new DummyDriver(),
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new PlannedOnceCompiler(),
  },
  postgres: {
    createDriver: () => new DummyDriver(),
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresCompiler(),
  },
} satisfies Record<string, Dialect>;

/** Stands for a value in a query that is compiled before its values are known. */
class Parameter {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Defines a query of the request path that is built and compiled once for each instance of Kysely.
 *
 * @param build Builds the query. It may only pass the values on to Kysely, because it runs before they are known. None
 *   of them is optional, because all calls have the same ones.
 */
export function defineQuery<Values extends object, Row>(
  build: (db: Kysely<Schema>, values: Values) => Compilable<Row>,
): (session: Session, values: Required<Values>) => Promise<readonly Row[]> {
  const compiled = new WeakMap<Kysely<Schema>, CompiledQuery<Row>>();
  return async ({ db }, values) => {
    let query = compiled.get(db);
    if (query === undefined) {
      const names = Object.keys(values).map((name) => [name, new Parameter(name)]);
      query = build(db, Object.fromEntries(names)).compile();
      compiled.set(db, query);
    }
    const bound = (each: unknown) => (each instanceof Parameter ? values[each.name as keyof Values] : each);
    const { rows } = await db.executeQuery<Row>({ ...query, parameters: query.parameters.map(bound) });
    return rows;
  };
}
