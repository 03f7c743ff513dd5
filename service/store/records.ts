import { CamelCasePlugin } from "kysely";
import type { Column } from "./column-types.ts";
import { tables } from "./schema.ts";

const columns = Object.values(tables).flatMap((table) => Object.entries<Column<unknown>>(table.columns));
const namesOf = (wanted: Column<unknown>["type"]) =>
  new Set(columns.flatMap(([name, { type }]) => (type === wanted ? name : [])));
/** The fields with JSON text and with flags in the database. */
const [json, flags] = [namesOf("json"), namesOf("flag")];

type Row = Readonly<Record<string, unknown>>;

/** Converts rows to records: camel case, undefined for null, parsed maps and lists, boolean flags. */
export class RecordsPlugin extends CamelCasePlugin {
  protected override mapRow(row: Row): Record<string, unknown> {
    const record: Record<string, unknown> = {};
    for (const [column, value] of Object.entries(row)) {
      const name = this.camelCase(column);
      record[name] = value === null ? undefined : parse(name, value);
    }
    return record;
  }
}

function parse(name: string, value: unknown): unknown {
  if (json.has(name)) return JSON.parse(String(value));
  return flags.has(name) ? Boolean(value) : value;
}

export function toStored(value: unknown): unknown {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "object" && value !== null ? JSON.stringify(value) : (value ?? null);
}

type Stored<Value> = Value extends undefined ? null : Value;

/** Returns the changes of a record with null instead of undefined, because Kysely omits undefined from updates. */
export function withNulls<Changes extends object>(
  changes: Changes,
): { [Name in keyof Changes]: Stored<Changes[Name]> } {
  return Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, value ?? null])) as never;
}
