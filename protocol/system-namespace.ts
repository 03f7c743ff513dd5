import type { Identifier } from "./identifier.ts";

/**
 * Returns the namespace in which Geneva keeps its records of a table: `__system` of an isolated namespace, else that of
 * the root. Keys of jobs commit to it, so that jobs of an isolated namespace neither read nor change records of others.
 *
 * @param object A table, a job or a namespace.
 * @param isolated The names of isolated namespaces, which are in the root.
 */
export function systemNamespaceOf([first, ...rest]: Identifier, isolated: readonly string[]): Identifier {
  return first !== undefined && rest.length > 0 && isolated.includes(first) ? [first, "__system"] : ["__system"];
}
