/** A table for the child: the address for its requests to the catalog, and the version to open. */
export interface TableAddress {
  /** The catalog's address for the child and the credential for this table. */
  readonly uri: string;
  readonly token: string;
  readonly storageOptions: Readonly<Record<string, string>>;
  readonly branch: string;
  /** The version to read, or the base of a change; undefined for a table without versions. */
  readonly version?: number | undefined;
  /** The size of the manifest of a version that remains open for later requests; undefined to close it after the call. */
  readonly cachedManifestBytes?: number | undefined;
  /** Enables stable row ids of a new table, which rows keep when they are moved or updated. */
  readonly stableRowIds?: boolean | undefined;
}

/** A call of the catalog to the child. An Arrow stream may follow it. */
export interface Call {
  /** The name of an operation of the child. */
  readonly operation: string;
  readonly args: unknown;
  readonly table: TableAddress;
}

/** A failure of the child: an error of the catalog, or the text of an error of Lance. */
export type Failure = { readonly kind: string; readonly message: string } | { readonly text: string };

/** The trailer of interrupted rows, whose value is an encoded Failure. */
export const failureTrailer = "x-failure";

/** The header with the length of the call in bytes. */
export const callBytesHeader = "x-call-bytes";

type Operation = (dataset: never, args: never, rows: never) => Promise<unknown>;
export type ArgsOf<Called> = Called extends (dataset: never, args: infer Args, rows: never) => unknown ? Args : never;
export type ResultOf<Called extends Operation> = Awaited<ReturnType<Called>>;
