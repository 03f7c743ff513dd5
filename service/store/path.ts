import type { Identifier } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";

/**
 * The separator of stored paths. Identifiers contain no control characters, so a path is unambiguous, and everything
 * below `path` sorts between `path + U+001F` and `path + U+0020`.
 */
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

/** Returns the half-open range of the paths below a namespace other than the root, without its own path. */
export function rangeBelow(path: string): { readonly from: string; readonly to: string } {
  return { from: path + separator, to: path + afterSeparator };
}

/** The path of an identifier with the range of all paths below it. */
export interface Subtree {
  readonly path: string;
  readonly from: string;
  readonly to: string;
}

export function subtree(identifier: Identifier): Subtree {
  const path = toPath(identifier);
  return { path, ...rangeBelow(path) };
}

/** Returns the condition that the path in a column is in a subtree. Every path is in the subtree of the root. */
export function isWithin(column: string, { path, from, to }: Subtree) {
  const ref = sql.ref(column);
  return sql<SqlBool>`(${path} = '' or ${ref} = ${path} or (${ref} > ${from} and ${ref} < ${to}))`;
}
