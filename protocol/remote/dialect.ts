import type { AnyContract } from "../contract.ts";

/** The headers that LanceDB's remote client sends and reads in addition to those of the protocol. */
export const remoteHeaders = {
  /** The header with the name in `db://name/prefix`. No other client sends it. */
  database: "x-lancedb-database",
  databasePrefix: "x-lancedb-database-prefix",
  version: "phalanx-version",
} as const;

/**
 * The server version that the client receives. From 0.3 on, it sends full-text queries unchanged and several vectors in
 * one request; before that, it sends a boolean query as an empty text and a fuzzy one without its fuzziness. From 0.4
 * on, it would write in parts that are merged at the end, which this catalog does not support.
 */
export const remoteVersion = "0.3.0";

/** Returns the contract with a trailing slash in its path, which is the path that LanceDB's client calls. */
export function withSlash<C extends AnyContract>(contract: C): C {
  return { ...contract, path: `${contract.path}/` };
}
