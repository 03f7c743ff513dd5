import type { Identifier } from "@tiltyard/protocol";
import { type RawBuilder, type SqlBool, sql } from "kysely";

/** The separator of stored paths. Everything below `path` sorts between `path + U+001F` and `path + U+0020`. */
const separator = "\u001f";
const afterSeparator = "\u0020";

/** The path of the namespace of dropped tables, which no identifier can have. */
export const droppedNamespace = "\u001e";

/** Converts an identifier to a path; the path of the root namespace is empty. */
export function toPath(identifier: Identifier): string {
  return identifier.join(separator);
}

export function fromPath(path: string): Identifier {
  return path === "" ? [] : path.split(separator);
}

/** Returns the path of the namespace and the name of an object in it. */
export function nameOf(identifier: Identifier): { readonly namespace: string; readonly name: string } {
  return { namespace: toPath(identifier.slice(0, -1)), name: identifier.at(-1) ?? "" };
}

/** Returns a record of a row with the identifier of its namespace. */
export function toRecord<Row extends { readonly namespace: string }>(row: Row) {
  return { ...row, namespace: fromPath(row.namespace) };
}

/** Returns the half-open range of the paths below a namespace other than the root, without its own path. */
export function rangeBelow(path: string): { readonly from: string; readonly to: string } {
  return { from: path + separator, to: path + afterSeparator };
}

/** Returns the half-open range of the locations below a location. */
export function boundsBelow(location: string): readonly [from: string, to: string] {
  return [`${location}/`, `${location}0`];
}

/** Returns the condition that the path in a column is that of a namespace or below it. */
export function isWithin(column: string, namespace: Identifier) {
  const path = toPath(namespace);
  if (path === "") return sql<SqlBool>`true`;
  const { from, to } = rangeBelow(path);
  return sql<SqlBool>`(${sql.ref(column)} = ${path} or (${sql.ref(column)} > ${from} and ${sql.ref(column)} < ${to}))`;
}

/** Returns the condition of the rows that follow a key in the order of these columns; all rows without a key. */
export function follows<Column extends string>(
  columns: readonly Column[],
  key: Readonly<Record<Column, string | number>> | undefined,
): RawBuilder<SqlBool> {
  if (key === undefined) return sql`true`;
  const values = columns.map((column) => key[column]);
  return sql`(${sql.join(columns.map((column) => sql.ref(column)))}) > (${sql.join(values)})`;
}
