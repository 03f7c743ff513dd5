import type { Identifier } from "./identifier.ts";

const systemName = "__system";

/**
 * Returns the namespace of Geneva's records of an object: `__system` of an isolated namespace, or that of the root.
 * Keys of jobs may commit only to this namespace, so jobs of an isolated namespace neither read nor change the records
 * of others.
 *
 * @param object A table, a job or a namespace.
 * @param isolated The names of the isolated namespaces, which are directly below the root.
 */
export function systemNamespaceOf([first, ...rest]: Identifier, isolated: readonly string[]): Identifier {
  return first !== undefined && rest.length > 0 && isolated.includes(first) ? [first, systemName] : [systemName];
}

/** Reports whether a table contains Geneva's records. */
export function isSystemTable(table: Identifier): boolean {
  return (table.length === 2 || table.length === 3) && table.at(-2) === systemName;
}
