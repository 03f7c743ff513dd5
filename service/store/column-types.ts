import type { ColumnType, Generated } from "kysely";

/** A column with the type of its values in queries and records, which `records.ts` converts to those in the database. */
export interface Column<Type> {
  readonly type: "text" | "json" | "integer" | "bigint" | "flag" | "counted key";
  /** The constraint in SQL. */
  readonly constraint: string;
  /** Present in the type alone. */
  readonly value?: Type;
}

/** A table. Further constraints than those of columns are in SQL. */
export interface Table<Columns> {
  readonly columns: Columns;
  readonly constraints: string;
  /** Reports whether the rows are stored in the primary key, if the database supports that. */
  readonly isClustered: boolean;
}

export function table<Columns>(constraints: string, columns: Columns): Table<Columns> {
  return { constraints, columns, isClustered: false };
}

export function clustered<Columns>(constraints: string, columns: Columns): Table<Columns> {
  return { constraints, columns, isClustered: true };
}

export const text = <Value extends string = string>() => required<Value>("text");
export const integer = () => required<number>("integer");
export const bigint = () => required<number>("bigint");
export const flag = () => required<boolean>("flag");
export const json = <Value extends object>() => required<Value>("json");
/** A number that the database generates and never reuses, as the primary key. */
export const countedKey: Column<Generated<number>> = { type: "counted key", constraint: "" };

function required<Value>(type: Column<Value>["type"]): Column<Value> {
  return { type, constraint: "not null" };
}

/** Returns a column that may be null, which a record represents by undefined. */
export function optional<Value>({ type }: Column<Value>) {
  const column: Column<ColumnType<Value | undefined, Value | null | undefined, Value | null>> = {
    type,
    constraint: "",
  };
  return column;
}

/** Returns a column with a default in SQL. */
export function withDefault<Value>({ type }: Column<Value>, value: string): Column<Generated<Value>> {
  return { type, constraint: `not null default ${value}` };
}

export type Texts = Readonly<Record<string, string>>;
export type Counts = Readonly<Record<string, number>>;

/**
 * The states of a version. A version of a batch is `held` before the commit point of the batch, and `condemned` once the
 * batch is being rolled back: both are hidden. A committed version is `recorded` until it is known that its manifest
 * durably has its final name, and then `finished`.
 */
export type VersionState = "held" | "condemned" | "recorded" | "finished";

/** The kinds of work that follows the response to the request that caused it. */
export const taskKinds = [
  "finish",
  "adopt",
  "purge",
  "forget",
  "retain",
  "automate",
  "end_record",
  "record_columns",
] as const;
export type TaskKind = (typeof taskKinds)[number];

/** The kinds of work that commits on a table cause. */
export type AutomationKind = "backfill" | "refresh" | "compact" | "build_index" | "clean_up";

/** The number of committed rows at a time, in milliseconds since the epoch. */
export type ProgressSample = readonly [atMillis: number, rows: number];
