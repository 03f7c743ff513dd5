import {
  type Compilable,
  type CompiledQuery,
  type Dialect,
  Kysely,
  type KyselyPlugin,
  PostgresDialect,
  PostgresQueryCompiler,
  SqliteDialect,
  SqliteQueryCompiler,
} from "kysely";
import { RecordsPlugin, toStored } from "./records.ts";
import type { Schema } from "./schema.ts";
import type { Session } from "./store.ts";

export function createQueries(dialect: Dialect, ...plugins: KyselyPlugin[]): Kysely<Schema> {
  return new Kysely<Schema>({ dialect, plugins: [new RecordsPlugin(), ...plugins] });
}

export class SqliteRecordsDialect extends SqliteDialect {
  override createQueryCompiler(): SqliteQueryCompiler {
    return new PlannedOnceCompiler();
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

  protected override addParameter(value: unknown): void {
    super.addParameter(value instanceof Parameter ? value : toStored(value));
  }
}

export class PostgresRecordsDialect extends PostgresDialect {
  override createQueryCompiler(): PostgresQueryCompiler {
    return new RecordsCompiler();
  }
}

class RecordsCompiler extends PostgresQueryCompiler {
  protected override addParameter(value: unknown): void {
    super.addParameter(value instanceof Parameter ? value : toStored(value));
  }
}

/** Stands for a value in a query that is compiled before its values are known. */
class Parameter {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

type DefinedQuery<Values, Row> = (session: Session, values: Values) => Promise<readonly Row[]>;

/**
 * Defines a query of the request path that is built and compiled once for each instance of Kysely.
 *
 * @param build Builds the query. It may only pass the values on to Kysely, because it runs before they are known. None
 *   of them is optional, because all calls have the same ones.
 */
export function defineQuery<Values extends object, Row>(
  build: (db: Kysely<Schema>, values: Values) => Compilable<Row>,
): DefinedQuery<Required<Values>, Row> {
  const compiled = new WeakMap<object, CompiledQuery<Row>>();
  return async ({ db }, values) => {
    // The transactions of an instance of Kysely share its plugins.
    const plugin = db.getExecutor().plugins.at(-1) ?? db;
    let query = compiled.get(plugin);
    if (query === undefined) {
      const names = Object.keys(values).map((name) => [name, new Parameter(name)]);
      query = build(db, Object.fromEntries(names)).compile();
      compiled.set(plugin, query);
    }
    const bound = (each: unknown) => (each instanceof Parameter ? toStored(values[each.name as keyof Values]) : each);
    const { rows } = await db.executeQuery<Row>({ ...query, parameters: query.parameters.map(bound) });
    return rows;
  };
}

/** Defines a query with a list of values, like `defineQuery`. It is compiled once for each length of the list. */
export function defineListQuery<Row>(
  build: (db: Kysely<Schema>, values: readonly string[]) => Compilable<Row>,
): DefinedQuery<readonly string[], Row> {
  const byLength = new Map<number, DefinedQuery<readonly string[], Row>>();
  return (session, values) => {
    const query =
      byLength.get(values.length) ??
      defineQuery((db, parameters: readonly string[]) => build(db, Object.values(parameters)));
    byLength.set(values.length, query);
    return query(session, values);
  };
}
