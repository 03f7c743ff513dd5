import type { Identifier } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";

/**
 * The separator of stored paths. Identifiers hold no control characters, so a path is
 * unambiguous, and all that is below `path` sorts between `path + U+001F` and `path + U+0020`.
 */
const separator = "\u001f";
const afterSeparator = "\u0020";

/** The path of the namespace that keeps dropped tables: no identifier can be written so. */
export const droppedNamespace = "\u001e";

/** Writes an identifier as one string; the root namespace is the empty string. */
export function toPath(identifier: Identifier): string {
  return identifier.join(separator);
}

export function fromPath(path: string): Identifier {
  return path === "" ? [] : path.split(separator);
}

/** The half-open range of the paths below a namespace that is not the root; its own path is not in it. */
export function rangeBelow(path: string): { readonly from: string; readonly to: string } {
  return { from: path + separator, to: path + afterSeparator };
}

/** What `isWithin` compares paths with: that of the identifier, and all that is below it. */
export interface Subtree {
  readonly path: string;
  readonly from: string;
  readonly to: string;
}

export function subtree(identifier: Identifier): Subtree {
  const path = toPath(identifier);
  return { path, ...rangeBelow(path) };
}

/** The condition that the path in a column is that of a subtree or below it; everything is below the root. */
export function isWithin(column: string, { path, from, to }: Subtree) {
  const ref = sql.ref(column);
  return sql<SqlBool>`(${path} = '' or ${ref} = ${path} or (${ref} > ${from} and ${ref} < ${to}))`;
}
