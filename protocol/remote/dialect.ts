import type { AnyContract } from "../contract.ts";

/** What LanceDB's remote client sends, and reads, besides the protocol's own headers. */
export const remoteHeaders = {
  /** The name in `db://name/prefix`; no other client sends it. */
  database: "x-lancedb-database",
  databasePrefix: "x-lancedb-database-prefix",
  version: "phalanx-version",
} as const;

/**
 * What the client is told to talk to. From 0.3 on it sends full-text queries as they are, and several vectors in one
 * request; before that a boolean query comes as an empty text, and a fuzzy one without its fuzziness. From 0.4 on it
 * would write in parts that are joined at the end, which this catalog does not do.
 */
export const remoteVersion = "0.3.0";

/** The same operation at the path where LanceDB's client calls it, which ends in a slash. */
export function withSlash<C extends AnyContract>(contract: C): C {
  return { ...contract, path: `${contract.path}/` };
}
