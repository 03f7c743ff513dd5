import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";

/** One table as the child opens it: where it asks the catalog for the table, and what it opens there. */
export interface TableAddress {
  /** The catalog's address for the child, and the credential for this table. */
  readonly uri: string;
  readonly token: string;
  readonly storageOptions: Readonly<Record<string, string>>;
  readonly branch: string;
  /** The version that is read, or that a change begins with; undefined for a table without versions. */
  readonly version?: number | undefined;
  /** The size of the manifest of a version that stays open for the next request; undefined closes it afterwards. */
  readonly keptBytes?: number | undefined;
  /** Whether rows of a new table keep their ids when they are moved or updated. */
  readonly stableRowIds?: boolean | undefined;
}

/** What the catalog asks of the child. An Arrow stream may follow it. */
export interface Call {
  /** The name of an operation of the child. */
  readonly operation: string;
  readonly args: unknown;
  readonly table: TableAddress;
}

/** Why the child could not answer: an error of the catalog, or one of Lance in its own words. */
export type Failure = { readonly kind: string; readonly message: string } | { readonly text: string };

/** The trailer of rows that broke off, whose value is an encoded Failure. */
export const failureTrailer = "x-failure";

/** The header that has the length of the call in bytes. */
export const callBytesHeader = "x-call-bytes";

/** Reads a whole request or response. */
export async function readWhole(from: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  from.on("data", (chunk: Buffer) => chunks.push(chunk));
  await finished(from, { writable: false });
  return Buffer.concat(chunks);
}

type Operation = (dataset: never, args: never, rows: never) => Promise<unknown>;
export type ArgsOf<Called> = Called extends (dataset: never, args: infer Args, rows: never) => unknown ? Args : never;
export type ResultOf<Called extends Operation> = Awaited<ReturnType<Called>>;
