import type { Identifier } from "@tiltyard/protocol";

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
