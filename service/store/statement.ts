import type { Kysely } from "kysely";
import type { Dialect } from "./dialect.ts";
import { Placeholder } from "./placeholder.ts";
import type { Schema } from "./schema.ts";

/** A query that Kysely builds once for each database, at its first use, and that runs with different values each time. */
export interface Statement<Parameters extends object, Row> {
  readonly compile: (dialect: Dialect) => CompiledStatement<Parameters, Row>;
}

export interface CompiledStatement<Parameters extends object, _Row> {
  readonly sql: string;
  /** The values in the order of the statement's placeholders. */
  readonly bind: (parameters: Parameters) => readonly unknown[];
}

interface Compilable<Row> {
  compile(): { readonly sql: string; readonly parameters: readonly unknown[]; readonly query: unknown };
  execute(): Promise<Row[]>;
}

/** Creates a statement. `build` receives placeholders for the parameters and may only pass them to Kysely. */
export function statement<Parameters extends object, Row>(
  build: (db: Kysely<Schema>, parameters: Parameters, dialect: Dialect) => Compilable<Row>,
): Statement<Parameters, Row> {
  const compiled = new Map<Dialect, CompiledStatement<Parameters, Row>>();
  return {
    compile: (dialect) => {
      let found = compiled.get(dialect);
      if (found === undefined) {
        found = compileStatement(dialect, build);
        compiled.set(dialect, found);
      }
      return found;
    },
  };
}

/**
 * Returns the named parameters as an object of columns for `values`, `set` and `and`. The names are listed because the
 * parameters that `build` receives have no enumerable keys.
 */
export function pick<Parameters extends object, Name extends keyof Parameters>(
  parameters: Parameters,
  ...names: readonly Name[]
): Pick<Parameters, Name> {
  return Object.fromEntries(names.map((name) => [name, parameters[name]])) as Pick<Parameters, Name>;
}

function compileStatement<Parameters extends object, Row>(
  dialect: Dialect,
  build: (db: Kysely<Schema>, parameters: Parameters, dialect: Dialect) => Compilable<Row>,
): CompiledStatement<Parameters, Row> {
  const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as Parameters;
  const { sql, parameters } = build(dialect.builder, placeholders, dialect).compile();
  const names = parameters.map((each) => {
    if (!(each instanceof Placeholder)) throw new Error(`${sql} has a value that is not a literal or a parameter`);
    return each.name as keyof Parameters;
  });
  return { sql, bind: (values) => names.map((name) => values[name]) };
}
