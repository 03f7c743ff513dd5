import type { Selectable } from "kysely";
import type { Column, Table } from "./column-types.ts";
import { tables as initial } from "./migrations/0001-initial.ts";

/** The tables with the columns that all migrations together create. */
export const tables = initial;

/**
 * The tables of the catalog, which are the same on every database. Times are milliseconds since the epoch, and paths of
 * namespaces have the format of `path.ts`. `records.ts` describes the names and the values of columns in the database.
 */
export type Schema = { [Name in keyof typeof tables]: ValuesOf<(typeof tables)[Name]> };

type ValuesOf<Given> =
  Given extends Table<infer Columns>
    ? { [Name in keyof Columns]: Columns[Name] extends Column<infer Value> ? Value : never }
    : never;

/** A row of a table as a record: null is undefined, and maps, lists and flags are parsed (`records.ts`). */
export type RecordOf<Name extends keyof Schema> = Readonly<Selectable<Schema[Name]>>;

/** Returns the names of the columns of a table except one, whose values are long. */
export function columnsWithout<Name extends keyof Schema, Long extends keyof Schema[Name]>(name: Name, long: Long) {
  const columns = Object.keys(tables[name].columns) as (keyof Schema[Name])[];
  return columns.filter((column): column is Exclude<keyof Schema[Name], Long> => column !== long);
}
