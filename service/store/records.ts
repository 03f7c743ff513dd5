import type { CompiledQuery, DatabaseConnection } from "kysely";

/**
 * The representation of records in the database: `createdAtMillis` is the column `created_at`, and other names are in
 * snake case; undefined is null; maps and lists are JSON text, and flags are 0 or 1.
 */

/** The columns with JSON text and with flags. */
const jsonColumns = ["properties", "objects", "metadata", "parameters", "progress", "result", "platform", "samples"];
const flags = ["finished", "is_automated"];

/** Runs a compiled query. */
export type RunQuery = DatabaseConnection["executeQuery"];

/** Returns the name of a table or a field in the database. */
export const toColumn = memoized((name) =>
  name.replace(/AtMillis$/, "At").replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

const fieldOf = memoized((column) => ({
  column,
  name: column.replace(/_at$/, "_at_millis").replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
  parse: flags.includes(column) ? Boolean : jsonColumns.includes(column) ? parseJson : undefined,
}));

/** Wraps a function that runs queries: their parameters are values of records, and their rows become records. */
export function withRecords(run: RunQuery): RunQuery {
  return async <Row>(query: CompiledQuery<unknown>) => {
    const result = await run<object>({ ...query, parameters: query.parameters.map(toStored) });
    return { ...result, rows: toRecords(result.rows) as Row[] };
  };
}

type Stored<Value> = Value extends undefined ? null : Value;

/** Returns the changes of a record with null instead of undefined, because Kysely omits undefined from updates. */
export function withNulls<Changes extends object>(
  changes: Changes,
): { [Name in keyof Changes]: Stored<Changes[Name]> } {
  return Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, value ?? null])) as never;
}

function toStored(value: unknown): unknown {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "object" && value !== null ? JSON.stringify(value) : (value ?? null);
}

function toRecords(rows: readonly object[]): object[] {
  const fields = Object.keys(rows[0] ?? {}).map(fieldOf);
  return rows.map((row) => {
    const record: Record<string, unknown> = {};
    for (const { column, name, parse } of fields) {
      const value: unknown = row[column as keyof typeof row];
      record[name] = value === null ? undefined : parse === undefined ? value : parse(value);
    }
    return record;
  });
}

function parseJson(value: unknown): unknown {
  return JSON.parse(String(value));
}

/** Caches the results of a function of names, whose number the queries of the catalog bound. */
function memoized<Result>(derive: (name: string) => Result): (name: string) => Result {
  const known = new Map<string, Result>();
  return (name) => {
    const result = known.get(name) ?? derive(name);
    known.set(name, result);
    return result;
  };
}
