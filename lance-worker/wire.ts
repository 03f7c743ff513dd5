/**
 * The wire between the catalog and the worker: a call is one request over the worker's socket, with its Arrow stream
 * behind it, and its result is JSON or, for `query`, an Arrow file.
 */
import type {
  contracts,
  JsonArrowSchema,
  managementContracts,
  QueryTableRequest,
  RequestOf,
  ResponseOf,
  remoteContracts,
} from "@tiltyard/protocol";
import type { Expression } from "./sql-text.ts";

/** A table for the worker: the address for its requests to the catalog, and the version to open. */
export interface TableAddress {
  /** The catalog's address for the worker and the credential for this table. */
  readonly uri: string;
  readonly token: string;
  readonly storageOptions: Readonly<Record<string, string>>;
  readonly branch: string;
  /** The version to read, or the base of a change; undefined for a table without versions. */
  readonly version?: number | undefined;
  /** The version of the format of the data files that a change writes, such as `2.1`; absent or empty for the default. */
  readonly fileVersion?: string | undefined;
  /** The size of the manifest of a version that remains open for later requests; undefined to close it after the call. */
  readonly cachedManifestBytes?: number | undefined;
  /** Enables stable row ids of a new table, which rows keep when they are moved or updated. */
  readonly stableRowIds?: boolean | undefined;
  /** The columns that Functions compute, for which written rows must not contain values. */
  readonly computed?: readonly ComputedColumn[] | undefined;
}

/** A column with the name of the Function that computes it. */
export interface ComputedColumn {
  readonly column: string;
  readonly function: string;
}

/** A call of the catalog to the worker. An Arrow stream may follow it. */
export interface Call {
  readonly operation: keyof (ReadOperations & ChangeOperations) | "query";
  readonly args: unknown;
  readonly table: TableAddress;
}

/** A failure of the worker: an error of the catalog, or the text of an error of Lance. */
export type Failure = { readonly kind: string; readonly message: string } | { readonly text: string };

/** The trailer of interrupted rows, whose value is an encoded Failure. */
export const failureTrailer = "x-failure";

/** The header with the length of the call in bytes. */
export const callBytesHeader = "x-call-bytes";

export type ArgsOf<Called> = Called extends (args: infer Args) => unknown ? Args : never;
export type ResultOf<Called extends (args: never) => Promise<unknown>> = Awaited<ReturnType<Called>>;
type Operation<Args, Result> = (args: Args) => Promise<Result>;

/** The operations that read one version. They are idempotent. */
export interface ReadOperations {
  readonly schema: Operation<object, JsonArrowSchema>;
  /** Returns the schema with the names of types in Lance's own format. */
  readonly lanceSchema: Operation<object, JsonArrowSchema>;
  readonly details: Operation<object, { readonly summary: Texts; readonly schema: JsonArrowSchema }>;
  readonly count: Operation<{ readonly predicate: Expression | undefined }, number>;
  readonly stats: Operation<object, TableStats>;
  readonly indices: Operation<object, readonly IndexDescription[]>;
  readonly indexStats: Operation<Named, IndexStats | null>;
  readonly prewarmIndex: Operation<Named, void>;
  readonly explain: Operation<{ readonly query: RowsQuery; readonly verbose: boolean }, string>;
  readonly planFilter: Operation<{ readonly filter: Expression }, string>;
  readonly analyze: Operation<RowsQuery, string>;
  readonly hasLsm: Operation<object, boolean>;
  readonly firstRows: Operation<FirstRowsRequest, FirstRows>;
  readonly records: Operation<RecordsRequest, readonly Readonly<Record<string, unknown>>[]>;
  readonly recordsOfOthers: Operation<RecordsOfOthersRequest, RecordsOfOthers>;
}

/** The operations that commit versions. */
export interface ChangeOperations {
  readonly write: Operation<WriteRequest, Written>;
  readonly merge: Operation<MergeRequest, Merged>;
  readonly update: Operation<UpdateRequest, { readonly rowsUpdated: number; readonly version: number }>;
  readonly delete: Operation<{ readonly predicate: Expression }, { readonly numDeletedRows: number } & NewVersion>;
  readonly createIndex: Operation<IndexRequest, void>;
  readonly dropIndex: Operation<Named, void>;
  readonly addColumns: Operation<NewColumns, NewVersion>;
  readonly alterColumns: Operation<{ readonly alterations: readonly ColumnAlteration[] }, NewVersion>;
  readonly dropColumns: Operation<{ readonly columns: readonly string[] }, NewVersion>;
  readonly restore: Operation<{ readonly version: number }, void>;
  readonly createBranch: Operation<Named & { readonly from: string; readonly version: number }, void>;
  readonly updateFieldMetadata: Operation<
    { readonly updates: readonly FieldMetadataUpdate[] },
    NewVersion & { readonly schema: JsonArrowSchema }
  >;
}

type Texts = Readonly<Record<string, string>>;
interface Named {
  readonly name: string;
}
interface NewVersion {
  readonly version: number;
}

/** The query of the protocol with the options that only LanceDB's dialect has. */
export interface QueryRequest extends Omit<QueryTableRequest, "id"> {
  readonly order_by?:
    | readonly { readonly column_name: string; readonly ascending: boolean; readonly nulls_first: boolean }[]
    | undefined;
}

/** A query whose expressions are converted. */
export interface RowsQuery extends Omit<QueryRequest, "filter" | "columns"> {
  readonly filter: Expression | undefined;
  readonly columns: Pick<NonNullable<QueryRequest["columns"]>, "column_names"> & {
    readonly column_aliases: Readonly<Record<string, Expression>> | undefined;
  };
}

type FirstRowsFields = "offset" | "sort" | "descending" | "like" | "like_row" | "columns" | "whole";
export interface FirstRowsRequest extends Pick<RequestOf<typeof managementContracts.listTableRows>, FirstRowsFields> {
  readonly limit: number;
  readonly filter: Expression | undefined;
  /** The maximum size of all values in bytes as JSON; that of ListTableRows when absent. */
  readonly bytesMax?: number;
}
export type FirstRows = ResponseOf<typeof managementContracts.listTableRows>;

export interface RecordsRequest {
  /** The columns to read; all columns if undefined. */
  readonly columns?: readonly string[];
  readonly filter?: Expression;
  readonly limit: number;
}

export interface RecordsOfOthersRequest {
  readonly job: string;
  /** The columns to compare, without those that are missing; all columns if undefined. */
  readonly columns?: readonly string[];
  /** The ids of the fragments to read; all fragments if undefined. */
  readonly fragments?: readonly number[] | undefined;
}
export interface RecordsOfOthers {
  readonly columns: readonly string[];
  /** The digest of the types of the columns and of the rows, which does not depend on their order or their files. */
  readonly digest: string;
}

export interface WriteRequest {
  readonly mode: "append" | "overwrite";
  /** The paths of the fields that a merge into an empty table matches, which the rows must have. */
  readonly on?: readonly string[];
}

/** The result of writing a stream of rows. */
export interface Written extends NewVersion {
  readonly rows: number;
}

type Filters = "when_matched_update_all_filt" | "when_not_matched_by_source_delete_filt";
export type MergeRequest = Omit<RequestOf<typeof contracts.mergeInsertIntoTable>, Filters> & {
  readonly [Name in Filters]: Expression | undefined;
};
export interface Merged extends NewVersion {
  readonly numInsertedRows: number;
  readonly numUpdatedRows: number;
  readonly numDeletedRows: number;
  readonly numAttempts: number;
  readonly numRows: number;
}

export interface UpdateRequest {
  readonly where: Expression | undefined;
  /** The paths of fields with their new values. */
  readonly updates: readonly (readonly [path: string, value: Expression])[];
}

/** The request of the protocol with the options that only LanceDB's dialect has. */
export type IndexRequest = ProtocolIndexRequest & Partial<Omit<RemoteIndexRequest, keyof ProtocolIndexRequest>>;
type ProtocolIndexRequest = RequestOf<typeof contracts.createTableIndex>;
type RemoteIndexRequest = RequestOf<typeof remoteContracts.remoteCreateTableIndex>;

export interface NewColumns {
  readonly computed: readonly SqlColumn[];
  /** The additional metadata of the computed columns. */
  readonly computedMetadata: Readonly<Record<string, string>>;
  readonly expressions: readonly SqlColumn[];
  /** Reports whether the rows are a schema whose columns are added without values. */
  readonly hasSchema: boolean;
}
interface SqlColumn extends Named {
  readonly valueSql: Expression;
}

export interface ColumnAlteration {
  readonly path: string;
  readonly rename?: string;
  /** A type in Lance's JSON format. */
  readonly dataType?: string;
  readonly nullable?: boolean;
}

export interface FieldMetadataUpdate {
  readonly path: string;
  /** The keys to set; null removes a key. */
  readonly metadata: Readonly<Record<string, string | null>>;
  /** Replaces all metadata of the field. */
  readonly replace: boolean;
}

export interface TableStats {
  readonly totalBytes: number;
  readonly numRows: number;
  readonly numIndices: number;
  readonly fragmentStats: {
    readonly numFragments: number;
    readonly numSmallFragments: number;
    readonly lengths: Readonly<Record<"min" | "max" | "mean" | "p25" | "p50" | "p75" | "p99", number>>;
  };
}

/** An index as the library lists it. The library lists only the types that it can build. */
export interface IndexDescription extends Named {
  readonly indexType: string;
  readonly columns: readonly string[];
  readonly indexUuid?: string | undefined;
  readonly typeUrl?: string | undefined;
  readonly createdAt?: string | undefined;
  readonly numIndexedRows?: number | undefined;
  readonly numUnindexedRows?: number | undefined;
  readonly sizeBytes?: number | undefined;
  readonly numSegments?: number | undefined;
  readonly indexVersion?: number | undefined;
  readonly indexDetails?: string | undefined;
}

export interface IndexStats {
  readonly numIndexedRows: number;
  readonly numUnindexedRows: number;
  readonly indexType: string;
  readonly distanceType?: string;
  readonly numIndices?: number;
}
