/** The operations of the clients with their documentation. Generated from the contracts: test/client/documented-types.test.ts. */

import type { Contracts, ManagementContracts } from "@tiltyard/protocol";
import type { CallOptions, CatalogAnswer, CatalogRequest } from "./operation-types.ts";

type Operations = Contracts & ManagementContracts;
type Request<Name extends keyof Operations> = CatalogRequest<Operations[Name]>;
type Answer<Name extends keyof Operations> = CatalogAnswer<Operations[Name]>;

export type CreateNamespaceRequest = Request<"createNamespace"> & {
  /** One of Create, ExistOk, Overwrite; case-insensitive, PascalCase or snake_case. */
  readonly mode?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type CreateNamespaceAnswer = Answer<"createNamespace"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type ListNamespacesRequest = Request<"listNamespaces"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
};

export type ListNamespacesAnswer = Answer<"listNamespaces"> & {
  /** The names of the namespaces. */
  readonly namespaces?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type DescribeNamespaceRequest = Request<"describeNamespace">;

export type DescribeNamespaceAnswer = Answer<"describeNamespace"> & {
  /** Properties by key. */
  readonly properties?: unknown;
};

export type DropNamespaceRequest = Request<"dropNamespace"> & {
  /** One of Fail, Skip; case-insensitive, PascalCase or snake_case. */
  readonly mode?: unknown;
  /** One of Restrict, Cascade; case-insensitive, PascalCase or snake_case. */
  readonly behavior?: unknown;
};

export type DropNamespaceAnswer = Answer<"dropNamespace"> & {
  /** Properties by key. */
  readonly properties?: unknown;
  /** The ids of the transactions that record the change. */
  readonly transaction_id?: unknown;
};

export type NamespaceExistsRequest = Request<"namespaceExists">;

export type NamespaceExistsAnswer = Answer<"namespaceExists">;

export type ListTablesRequest = Request<"listTables"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** Includes tables without a version; true when absent. */
  readonly include_declared?: unknown;
};

export type ListTablesAnswer = Answer<"listTables"> & {
  /** The names of the tables; their identifiers in a list of all namespaces. */
  readonly tables?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type ListAllTablesRequest = Request<"listAllTables"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** Includes tables without a version; true when absent. */
  readonly include_declared?: unknown;
};

export type ListAllTablesAnswer = Answer<"listAllTables"> & {
  /** The names of the tables; their identifiers in a list of all namespaces. */
  readonly tables?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type DeclareTableRequest = Request<"declareTable"> & {
  /** The URI of the folder of the table; chosen by the catalog when absent. */
  readonly location?: unknown;
  /** Returns temporary credentials for the storage, if the catalog is configured to issue them. */
  readonly vend_credentials?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type DeclareTableAnswer = Answer<"declareTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** Options for the access to the storage, such as temporary credentials. */
  readonly storage_options?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
  /** True if writers must commit versions through the catalog. */
  readonly managed_versioning?: unknown;
};

export type RegisterTableRequest = Request<"registerTable"> & {
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** One of Create, Overwrite; case-insensitive, PascalCase or snake_case. */
  readonly mode?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type RegisterTableAnswer = Answer<"registerTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type DescribeTableRequest = Request<"describeTable"> & {
  /** Also returns `table_uri`. */
  readonly with_table_uri?: unknown;
  /** Reads the manifest, and returns the version, the schema and the statistics. */
  readonly load_detailed_metadata?: unknown;
  /** Reports in `is_only_declared` whether the table has no version yet. */
  readonly check_declared?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** A tag instead of a version. */
  readonly tag?: unknown;
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** Returns temporary credentials for the storage, if the catalog is configured to issue them. */
  readonly vend_credentials?: unknown;
};

export type DescribeTableAnswer = Answer<"describeTable"> & {
  /** The name of the table. */
  readonly table?: unknown;
  /** The parts of the identifier of the namespace. */
  readonly namespace?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** The URI of the table, if `with_table_uri` is true. */
  readonly table_uri?: unknown;
  /** The schema of the table. */
  readonly schema?: unknown;
  /** Options for the access to the storage, such as temporary credentials. */
  readonly storage_options?: unknown;
  /** Statistics of the version. */
  readonly stats?: unknown;
  /** The metadata of the schema. */
  readonly metadata?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
  /** True if writers must commit versions through the catalog. */
  readonly managed_versioning?: unknown;
  /** True for a table without a version on the branch. */
  readonly is_only_declared?: unknown;
};

export type TableExistsRequest = Request<"tableExists"> & {
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type TableExistsAnswer = Answer<"tableExists">;

export type DropTableRequest = Request<"dropTable">;

export type DropTableAnswer = Answer<"dropTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type DeregisterTableRequest = Request<"deregisterTable">;

export type DeregisterTableAnswer = Answer<"deregisterTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type RenameTableRequest = Request<"renameTable"> & {
  /** The name of the table after the change. */
  readonly new_table_name?: unknown;
  /** The namespace of the table after the change; the present one when absent. */
  readonly new_namespace_id?: unknown;
};

export type RenameTableAnswer = Answer<"renameTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type AlterTableBackfillColumnsRequest = Request<"alterTableBackfillColumns"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** A computed column. */
  readonly column?: unknown;
  /** A condition on rows, as SQL; those without a value when absent. */
  readonly where?: unknown;
  /** The number of workers that run at the same time. */
  readonly concurrency?: unknown;
  /** Geneva's argument of the same name: the number of threads of a worker. */
  readonly intra_applier_concurrency?: unknown;
  /** Geneva's argument of the same name: the minimum number of rows of a checkpoint. */
  readonly min_checkpoint_size?: unknown;
  /** Geneva's argument of the same name: the maximum number of rows of a checkpoint. */
  readonly max_checkpoint_size?: unknown;
  /** Geneva's argument of the same name: the seconds between checkpoints. */
  readonly batch_checkpoint_flush_interval_seconds?: unknown;
  /** Geneva's argument of the same name: the version to read. */
  readonly read_version?: unknown;
  /** Geneva's argument of the same name: the number of rows of a task. */
  readonly task_size?: unknown;
  /** Geneva's argument of the same name: the number of fragments to fill. */
  readonly num_frags?: unknown;
  /** Geneva's argument of the same name: the number of rows of a checkpoint. */
  readonly checkpoint_size?: unknown;
  /** Geneva's argument of the same name: the number of fragments of a commit. */
  readonly commit_granularity?: unknown;
  /** The Ray cluster of that name in the runner's file, or in Geneva's definitions. */
  readonly cluster?: unknown;
  /** The manifest of Geneva: the packages, files and images for the function, as JSON, or the name of one that Geneva defined. */
  readonly manifest?: unknown;
};

export type AlterTableBackfillColumnsAnswer = Answer<"alterTableBackfillColumns">;

export type RestoreTableRequest = Request<"restoreTable"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The version to restore. */
  readonly version?: unknown;
};

export type RestoreTableAnswer = Answer<"restoreTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type UpdateTableSchemaMetadataRequest = Request<"updateTableSchemaMetadata"> & {
  /** The branch; the main branch when absent. */
  readonly branch?: unknown;
};

export type UpdateTableSchemaMetadataAnswer = Answer<"updateTableSchemaMetadata">;

export type UpdateFieldMetadataRequest = Request<"updateFieldMetadata"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The changes. */
  readonly updates?: unknown;
};

export type UpdateFieldMetadataAnswer = Answer<"updateFieldMetadata"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The metadata after the change, by the path of the field. */
  readonly fields?: unknown;
};

export type GetTableStatsRequest = Request<"getTableStats"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
};

export type GetTableStatsAnswer = Answer<"getTableStats"> & {
  /** The size of the data in bytes. */
  readonly total_bytes?: unknown;
  /** The number of rows. */
  readonly num_rows?: unknown;
  /** The number of indices. */
  readonly num_indices?: unknown;
  /** Statistics of the fragments. */
  readonly fragment_stats?: unknown;
};

export type AlterTableAddColumnsRequest = Request<"alterTableAddColumns"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The columns to add. */
  readonly new_columns?: unknown;
};

export type AlterTableAddColumnsAnswer = Answer<"alterTableAddColumns"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type AlterTableAlterColumnsRequest = Request<"alterTableAlterColumns"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The changes of columns. */
  readonly alterations?: unknown;
};

export type AlterTableAlterColumnsAnswer = Answer<"alterTableAlterColumns"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type AlterTableDropColumnsRequest = Request<"alterTableDropColumns"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The columns. */
  readonly columns?: unknown;
};

export type AlterTableDropColumnsAnswer = Answer<"alterTableDropColumns"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type CreateTableVersionRequest = Request<"createTableVersion"> & {
  /** The number of the new version: the highest number so far plus 1. */
  readonly version?: unknown;
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The path of the staged manifest in the store of the table. */
  readonly manifest_path?: unknown;
  /** The size of the manifest in bytes. */
  readonly manifest_size?: unknown;
  /** The entity tag of the manifest in the storage. */
  readonly e_tag?: unknown;
  /** Metadata of the version by key. */
  readonly metadata?: unknown;
  /** The naming scheme of manifests: `V2` sorts the latest version first. */
  readonly naming_scheme?: unknown;
};

export type CreateTableVersionAnswer = Answer<"createTableVersion"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The committed version. */
  readonly version?: unknown;
};

export type ListTableVersionsRequest = Request<"listTableVersions"> & {
  /** The branch; the main branch when absent. */
  readonly branch?: unknown;
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** Sorts the latest version first. */
  readonly descending?: unknown;
};

export type ListTableVersionsAnswer = Answer<"listTableVersions"> & {
  /** The versions. */
  readonly versions?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type DescribeTableVersionRequest = Request<"describeTableVersion"> & {
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
};

export type DescribeTableVersionAnswer = Answer<"describeTableVersion"> & {
  /** The version. */
  readonly version?: unknown;
};

export type BatchDeleteTableVersionsRequest = Request<"batchDeleteTableVersions"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The ranges of versions to delete. */
  readonly ranges?: unknown;
};

export type BatchDeleteTableVersionsAnswer = Answer<"batchDeleteTableVersions"> & {
  /** The number of deleted version records. */
  readonly deleted_count?: unknown;
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type BatchCreateTableVersionsRequest = Request<"batchCreateTableVersions"> & {
  /** The versions to commit. */
  readonly entries?: unknown;
};

export type BatchCreateTableVersionsAnswer = Answer<"batchCreateTableVersions"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The versions. */
  readonly versions?: unknown;
};

export type BatchCommitTablesRequest = Request<"batchCommitTables"> & {
  /** The changes, in their order. */
  readonly operations?: unknown;
};

export type BatchCommitTablesAnswer = Answer<"batchCommitTables"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The result of each change, in the order of the request. */
  readonly results?: unknown;
};

export type DescribeTransactionRequest = Request<"describeTransaction">;

export type DescribeTransactionAnswer = Answer<"describeTransaction"> & {
  /** The status of the transaction or the job. */
  readonly status?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type AlterTransactionRequest = Request<"alterTransaction"> & {
  /** The actions, in their order. All are applied, or none. */
  readonly actions?: unknown;
};

export type AlterTransactionAnswer = Answer<"alterTransaction"> & {
  /** The status of the transaction or the job. */
  readonly status?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type CreateTableRequest = Request<"createTable"> & {
  /** One of Create, ExistOk, Overwrite; case-insensitive, PascalCase or snake_case. */
  readonly mode?: unknown;
  /** The table's properties, as a JSON object. */
  readonly properties?: unknown;
  /** Not supported: the catalog writes with its own options. */
  readonly storage_options?: unknown;
};

export type CreateTableAnswer = Answer<"createTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The URI of the folder of the table. */
  readonly location?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** Options for the access to the storage, such as temporary credentials. */
  readonly storage_options?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type InsertIntoTableRequest = Request<"insertIntoTable"> & {
  /** The branch; the main branch when absent. */
  readonly branch?: unknown;
  /** One of Append, Overwrite; case-insensitive, PascalCase or snake_case. */
  readonly mode?: unknown;
};

export type InsertIntoTableAnswer = Answer<"insertIntoTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of inserted rows. */
  readonly num_inserted_rows?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type MergeInsertIntoTableRequest = Request<"mergeInsertIntoTable"> & {
  /** The branch; the main branch when absent. */
  readonly branch?: unknown;
  /** The fields whose values together identify a row. */
  readonly on?: unknown;
  /** Updates rows with a match; false when absent. */
  readonly when_matched_update_all?: unknown;
  /** A condition, as SQL, on the rows to update. */
  readonly when_matched_update_all_filt?: unknown;
  /** Inserts rows without a match; false when absent. */
  readonly when_not_matched_insert_all?: unknown;
  /** Deletes rows of the table without a match; false when absent. */
  readonly when_not_matched_by_source_delete?: unknown;
  /** A condition, as SQL, on the rows to delete. */
  readonly when_not_matched_by_source_delete_filt?: unknown;
  /** The time limit of the operation, such as `30s`. */
  readonly timeout?: unknown;
  /** Uses an index to find matching rows; true when absent. */
  readonly use_index?: unknown;
};

export type MergeInsertIntoTableAnswer = Answer<"mergeInsertIntoTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of updated rows. */
  readonly num_updated_rows?: unknown;
  /** The number of inserted rows. */
  readonly num_inserted_rows?: unknown;
  /** The number of deleted rows. */
  readonly num_deleted_rows?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type UpdateTableRequest = Request<"updateTable"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** A condition on rows, as SQL; all rows when absent. */
  readonly predicate?: unknown;
  /** Pairs of a field's path and the SQL expression of its new value. */
  readonly updates?: unknown;
  /** Not supported: the operation does not change the properties of the table. */
  readonly properties?: unknown;
};

export type UpdateTableAnswer = Answer<"updateTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of updated rows. */
  readonly updated_rows?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** Properties by key. */
  readonly properties?: unknown;
};

export type DeleteFromTableRequest = Request<"deleteFromTable"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** A condition on rows, as SQL; `true` deletes all rows. */
  readonly predicate?: unknown;
};

export type DeleteFromTableAnswer = Answer<"deleteFromTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
};

export type QueryTableRequest = Request<"queryTable"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The maximum number of rows. */
  readonly k?: unknown;
  /** The number of rows to skip. */
  readonly offset?: unknown;
  /** The columns. */
  readonly columns?: unknown;
  /** A condition on rows, as SQL. */
  readonly filter?: unknown;
  /** Applies the filter before the search; true when absent. */
  readonly prefilter?: unknown;
  /** Also returns the ids of rows. */
  readonly with_row_id?: unknown;
  /** Searches only indexed rows. */
  readonly fast_search?: unknown;
  /** The vector to find neighbors of. */
  readonly vector?: unknown;
  /** The column of vectors; the only one when absent. */
  readonly vector_column?: unknown;
  /** The distance of vectors: `l2`, `cosine`, `dot` or `hamming`. */
  readonly distance_type?: unknown;
  /** The minimum distance, inclusive. */
  readonly lower_bound?: unknown;
  /** The maximum distance, exclusive. */
  readonly upper_bound?: unknown;
  /** Ignored with minimum_nprobes or maximum_nprobes. */
  readonly nprobes?: unknown;
  /** The minimum number of partitions to search. */
  readonly minimum_nprobes?: unknown;
  /** The maximum number of partitions to search. */
  readonly maximum_nprobes?: unknown;
  /** The number of candidates of a search in an HNSW index. */
  readonly ef?: unknown;
  /** Reads this many times as many rows, and sorts them by their exact distance. */
  readonly refine_factor?: unknown;
  /** Searches all vectors instead of an index. */
  readonly bypass_vector_index?: unknown;
  /** A full-text search. */
  readonly full_text_query?: unknown;
};

export type QueryTableAnswer = Answer<"queryTable">;

export type CountTableRowsRequest = Request<"countTableRows"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** A condition on rows, as SQL; all rows when absent. */
  readonly predicate?: unknown;
};

export type CountTableRowsAnswer = Answer<"countTableRows">;

export type ExplainTableQueryPlanRequest = Request<"explainTableQueryPlan"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The query. */
  readonly query?: unknown;
  /** Returns more details. */
  readonly verbose?: unknown;
};

export type ExplainTableQueryPlanAnswer = Answer<"explainTableQueryPlan">;

export type AnalyzeTableQueryPlanRequest = Request<"analyzeTableQueryPlan"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The maximum number of rows. */
  readonly k?: unknown;
  /** The number of rows to skip. */
  readonly offset?: unknown;
  /** The columns. */
  readonly columns?: unknown;
  /** A condition on rows, as SQL. */
  readonly filter?: unknown;
  /** Applies the filter before the search; true when absent. */
  readonly prefilter?: unknown;
  /** Also returns the ids of rows. */
  readonly with_row_id?: unknown;
  /** Searches only indexed rows. */
  readonly fast_search?: unknown;
  /** The vector to find neighbors of. */
  readonly vector?: unknown;
  /** The column of vectors; the only one when absent. */
  readonly vector_column?: unknown;
  /** The distance of vectors: `l2`, `cosine`, `dot` or `hamming`. */
  readonly distance_type?: unknown;
  /** The minimum distance, inclusive. */
  readonly lower_bound?: unknown;
  /** The maximum distance, exclusive. */
  readonly upper_bound?: unknown;
  /** Ignored with minimum_nprobes or maximum_nprobes. */
  readonly nprobes?: unknown;
  /** The minimum number of partitions to search. */
  readonly minimum_nprobes?: unknown;
  /** The maximum number of partitions to search. */
  readonly maximum_nprobes?: unknown;
  /** The number of candidates of a search in an HNSW index. */
  readonly ef?: unknown;
  /** Reads this many times as many rows, and sorts them by their exact distance. */
  readonly refine_factor?: unknown;
  /** Searches all vectors instead of an index. */
  readonly bypass_vector_index?: unknown;
  /** A full-text search. */
  readonly full_text_query?: unknown;
};

export type AnalyzeTableQueryPlanAnswer = Answer<"analyzeTableQueryPlan">;

export type CreateTableIndexRequest = Request<"createTableIndex"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The name of the column. */
  readonly column?: unknown;
  /** The type of the index, such as BTREE, BITMAP, LABEL_LIST, FTS, IVF_FLAT, IVF_PQ or IVF_HNSW_SQ. */
  readonly index_type?: unknown;
  /** The name. */
  readonly name?: unknown;
  /** The distance of vectors: `l2`, `cosine`, `dot` or `hamming`. */
  readonly distance_type?: unknown;
  /** The number of partitions. */
  readonly num_partitions?: unknown;
  /** The number of parts of a vector for product quantization. */
  readonly num_sub_vectors?: unknown;
  /** The number of bits of a code of product quantization. */
  readonly num_bits?: unknown;
  /** The number of sampled rows for each partition during the training. */
  readonly sample_rate?: unknown;
  /** The maximum number of iterations of the training. */
  readonly max_iterations?: unknown;
  /** Not supported by this catalog: use `num_partitions`. */
  readonly target_partition_size?: unknown;
  /** The number of neighbors in an HNSW graph. */
  readonly m?: unknown;
  /** The number of candidates during the construction of an HNSW graph. */
  readonly ef_construction?: unknown;
  /** Stores the positions of words, which phrase queries require. */
  readonly with_position?: unknown;
  /** The tokenizer: `simple`, `whitespace`, `raw`, `ngram` or the name of a dictionary. */
  readonly base_tokenizer?: unknown;
  /** The language of stems and stop words. */
  readonly language?: unknown;
  /** The maximum length of a token. Longer ones are not indexed. */
  readonly max_token_length?: unknown;
  /** Converts text to lower case. */
  readonly lower_case?: unknown;
  /** Reduces words to their stem. */
  readonly stem?: unknown;
  /** Omits frequent words. */
  readonly remove_stop_words?: unknown;
  /** Replaces accented letters by their base letters. */
  readonly ascii_folding?: unknown;
};

export type CreateTableIndexAnswer = Answer<"createTableIndex"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type CreateTableScalarIndexRequest = Request<"createTableScalarIndex"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The name of the column. */
  readonly column?: unknown;
  /** The type of the index, such as BTREE, BITMAP, LABEL_LIST, FTS, IVF_FLAT, IVF_PQ or IVF_HNSW_SQ. */
  readonly index_type?: unknown;
  /** The name. */
  readonly name?: unknown;
  /** The distance of vectors: `l2`, `cosine`, `dot` or `hamming`. */
  readonly distance_type?: unknown;
  /** The number of partitions. */
  readonly num_partitions?: unknown;
  /** The number of parts of a vector for product quantization. */
  readonly num_sub_vectors?: unknown;
  /** The number of bits of a code of product quantization. */
  readonly num_bits?: unknown;
  /** The number of sampled rows for each partition during the training. */
  readonly sample_rate?: unknown;
  /** The maximum number of iterations of the training. */
  readonly max_iterations?: unknown;
  /** Not supported by this catalog: use `num_partitions`. */
  readonly target_partition_size?: unknown;
  /** The number of neighbors in an HNSW graph. */
  readonly m?: unknown;
  /** The number of candidates during the construction of an HNSW graph. */
  readonly ef_construction?: unknown;
  /** Stores the positions of words, which phrase queries require. */
  readonly with_position?: unknown;
  /** The tokenizer: `simple`, `whitespace`, `raw`, `ngram` or the name of a dictionary. */
  readonly base_tokenizer?: unknown;
  /** The language of stems and stop words. */
  readonly language?: unknown;
  /** The maximum length of a token. Longer ones are not indexed. */
  readonly max_token_length?: unknown;
  /** Converts text to lower case. */
  readonly lower_case?: unknown;
  /** Reduces words to their stem. */
  readonly stem?: unknown;
  /** Omits frequent words. */
  readonly remove_stop_words?: unknown;
  /** Replaces accented letters by their base letters. */
  readonly ascii_folding?: unknown;
};

export type CreateTableScalarIndexAnswer = Answer<"createTableScalarIndex"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ListTableIndicesRequest = Request<"listTableIndices"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response. */
  readonly limit?: unknown;
};

export type ListTableIndicesAnswer = Answer<"listTableIndices"> & {
  /** The indices. */
  readonly indexes?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type DescribeTableIndexStatsRequest = Request<"describeTableIndexStats"> & {
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
  /** The number of the version; the latest one when absent. */
  readonly version?: unknown;
  /** The name of the index. */
  readonly index_name?: unknown;
};

export type DescribeTableIndexStatsAnswer = Answer<"describeTableIndexStats"> & {
  /** The distance of vectors: `l2`, `cosine`, `dot` or `hamming`. */
  readonly distance_type?: unknown;
  /** The type of the index. */
  readonly index_type?: unknown;
  /** The number of indexed rows. */
  readonly num_indexed_rows?: unknown;
  /** The number of rows that the index does not cover. */
  readonly num_unindexed_rows?: unknown;
  /** The number of indices. */
  readonly num_indices?: unknown;
};

export type DropTableIndexRequest = Request<"dropTableIndex"> & {
  /** The branch; the main branch when absent. */
  readonly branch?: unknown;
};

export type DropTableIndexAnswer = Answer<"dropTableIndex"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ListTableTagsRequest = Request<"listTableTags"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
};

export type ListTableTagsAnswer = Answer<"listTableTags"> & {
  /** The tags by name. */
  readonly tags?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type GetTableTagVersionRequest = Request<"getTableTagVersion"> & {
  /** The name of the tag. */
  readonly tag?: unknown;
};

export type GetTableTagVersionAnswer = Answer<"getTableTagVersion"> & {
  /** The tagged version. */
  readonly version?: unknown;
  /** Absent for the main branch. */
  readonly branch?: unknown;
};

export type CreateTableTagRequest = Request<"createTableTag"> & {
  /** The name of the tag. */
  readonly tag?: unknown;
  /** The version to tag. */
  readonly version?: unknown;
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
};

export type CreateTableTagAnswer = Answer<"createTableTag"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type UpdateTableTagRequest = Request<"updateTableTag"> & {
  /** The name of the tag. */
  readonly tag?: unknown;
  /** The version to tag. */
  readonly version?: unknown;
  /** The branch to use; the main branch when absent. */
  readonly branch?: unknown;
};

export type UpdateTableTagAnswer = Answer<"updateTableTag"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type DeleteTableTagRequest = Request<"deleteTableTag"> & {
  /** The name of the tag. */
  readonly tag?: unknown;
};

export type DeleteTableTagAnswer = Answer<"deleteTableTag"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ListTableBranchesRequest = Request<"listTableBranches"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
};

export type ListTableBranchesAnswer = Answer<"listTableBranches"> & {
  /** The branches by name. */
  readonly branches?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type CreateTableBranchRequest = Request<"createTableBranch"> & {
  /** The name of the branch. */
  readonly name?: unknown;
  /** The branch from which the new branch begins; the main branch when absent. */
  readonly from_branch?: unknown;
  /** The version at which the branch begins; the latest one when absent. */
  readonly from_version?: unknown;
};

export type CreateTableBranchAnswer = Answer<"createTableBranch"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type DeleteTableBranchRequest = Request<"deleteTableBranch"> & {
  /** The name of the branch. */
  readonly name?: unknown;
};

export type DeleteTableBranchAnswer = Answer<"deleteTableBranch"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type CreateMaterializedViewRequest = Request<"createMaterializedView"> & {
  /** The kind of the view. */
  readonly kind?: unknown;
  /** The query in Geneva's format, which the catalog stores unchanged. */
  readonly source_query?: unknown;
  /** An Arrow schema as an IPC message, in Base64. */
  readonly output_schema?: unknown;
  /** The function of the view; absent for views of a query. */
  readonly udtf_spec?: unknown;
  /** False opens the first refresh; true when absent. */
  readonly with_no_data?: unknown;
  /** Opens a refresh for new rows of the source. */
  readonly auto_refresh?: unknown;
};

export type CreateMaterializedViewAnswer = Answer<"createMaterializedView">;

export type RefreshMaterializedViewRequest = Request<"refreshMaterializedView"> & {
  /** The version of the source to read; the latest one when absent. */
  readonly src_version?: unknown;
  /** The maximum number of rows of a fragment of the view. */
  readonly max_rows_per_fragment?: unknown;
  /** The number of workers that run at the same time. */
  readonly concurrency?: unknown;
  /** Geneva's argument of the same name: the number of threads of a worker. */
  readonly intra_applier_concurrency?: unknown;
  /** Geneva's argument of the same name: the number of source rows of a task. */
  readonly source_task_size?: unknown;
  /** The Ray cluster of that name in the file of the runner. */
  readonly cluster?: unknown;
  /** The maximum number of rows of the view; only for chunker views. */
  readonly output_limit?: unknown;
  /** The manifest of Geneva: the packages, files and images for the function, as JSON. */
  readonly manifest?: unknown;
};

export type RefreshMaterializedViewAnswer = Answer<"refreshMaterializedView">;

export interface CatalogClient {
  /** Create a namespace. The parent must exist. If the namespace exists, the response is 409 (code 2), unless `mode` is `ExistOk` or `Overwrite`. Requires the role `writer` on the object in the path. */
  readonly createNamespace: (request: CreateNamespaceRequest, options?: CallOptions) => Promise<CreateNamespaceAnswer>;
  /** List the child namespaces of a namespace. Returns names, not identifiers, in pages. 404 (code 1) if the namespace does not exist. Requires the role `reader` on the object in the path. */
  readonly listNamespaces: (request: ListNamespacesRequest, options?: CallOptions) => Promise<ListNamespacesAnswer>;
  /** Describe a namespace. Returns the properties of the namespace. 404 (code 1) if it does not exist. Requires the role `reader` on the object in the path. */
  readonly describeNamespace: (
    request: DescribeNamespaceRequest,
    options?: CallOptions,
  ) => Promise<DescribeNamespaceAnswer>;
  /** Drop a namespace. Only an empty namespace is dropped; otherwise the response is 409 (code 3). `behavior` `Cascade` also drops its content, in steps. Requires the role `admin` on the object in the path. */
  readonly dropNamespace: (request: DropNamespaceRequest, options?: CallOptions) => Promise<DropNamespaceAnswer>;
  /** Check that a namespace exists. An empty response means yes; 404 (code 1) means no. Requires the role `reader` on the object in the path. */
  readonly namespaceExists: (request: NamespaceExistsRequest, options?: CallOptions) => Promise<NamespaceExistsAnswer>;
  /** List the tables of a namespace, by name. Returns names in pages of an alphabetical order. 404 (code 1) if the namespace does not exist. Requires the role `reader` on the object in the path. */
  readonly listTables: (request: ListTablesRequest, options?: CallOptions) => Promise<ListTablesAnswer>;
  /** List the tables of all namespaces, by full identifier. Returns identifiers in pages of an alphabetical order. Requires the role `reader` on the catalog. */
  readonly listAllTables: (request: ListAllTablesRequest, options?: CallOptions) => Promise<ListAllTablesAnswer>;
  /** Declare a table without touching storage. Reserves the name and returns the location, at which a client then writes the first version. 409 (code 5) if the table exists. Requires the role `writer` on the object in the path. */
  readonly declareTable: (request: DeclareTableRequest, options?: CallOptions) => Promise<DeclareTableAnswer>;
  /** Register an existing Lance table at a location. The location must be in the warehouse or in an allowed location, and belong to no other table: otherwise 400 or 409. Requires the role `writer` on the object in the path. */
  readonly registerTable: (request: RegisterTableRequest, options?: CallOptions) => Promise<RegisterTableAnswer>;
  /** Describe a table. Returns the location and the properties. `load_detailed_metadata` adds the version, the schema and statistics, which the catalog reads from the manifest. 404 (code 4) if the table does not exist. Requires the role `reader` on the object in the path. */
  readonly describeTable: (request: DescribeTableRequest, options?: CallOptions) => Promise<DescribeTableAnswer>;
  /** Check that a table exists. An empty response means yes; 404 (code 4) means no. Requires the role `reader` on the object in the path. */
  readonly tableExists: (request: TableExistsRequest, options?: CallOptions) => Promise<TableExistsAnswer>;
  /** Drop a table and delete its data. With a retention of dropped tables, UndropTable can bring the table back until then. 409 (code 19) for a protected table. Requires the role `writer` on the object in the path. */
  readonly dropTable: (request: DropTableRequest, options?: CallOptions) => Promise<DropTableAnswer>;
  /** Remove a table from the catalog and keep its data. The files stay, and RegisterTable accepts them again. 409 (code 19) for a protected table. Requires the role `writer` on the object in the path. */
  readonly deregisterTable: (request: DeregisterTableRequest, options?: CallOptions) => Promise<DeregisterTableAnswer>;
  /** Rename a table, or move it to another namespace. The files stay at their location. 409 (code 5) if the new name is taken, and 409 while the table has an open job. Requires the role `writer` on the object in the path. */
  readonly renameTable: (request: RenameTableRequest, options?: CallOptions) => Promise<RenameTableAnswer>;
  /** Open a job that fills a computed column. Returns the id of the job, which a runner claims. A job with the same parameters that is open already is returned; 409 if one with other parameters is open. Requires the role `writer` on the object in the path. */
  readonly alterTableBackfillColumns: (
    request: AlterTableBackfillColumnsRequest,
    options?: CallOptions,
  ) => Promise<AlterTableBackfillColumnsAnswer>;
  /** Restore a table to an earlier version. Commits a new version with the content of the earlier one; no version is lost. 404 (code 11) if it does not exist. Requires the role `writer` on the object in the path. */
  readonly restoreTable: (request: RestoreTableRequest, options?: CallOptions) => Promise<RestoreTableAnswer>;
  /** Replace the metadata of a table's schema. Replaces all entries, and commits a version. Retry after 409 (code 14). Requires the role `writer` on the object in the path. */
  readonly updateTableSchemaMetadata: (
    request: UpdateTableSchemaMetadataRequest,
    options?: CallOptions,
  ) => Promise<UpdateTableSchemaMetadataAnswer>;
  /** Update the metadata of a table's fields. Changes the entries of the named fields, and commits a version. An unknown field is refused. Requires the role `writer` on the object in the path. */
  readonly updateFieldMetadata: (
    request: UpdateFieldMetadataRequest,
    options?: CallOptions,
  ) => Promise<UpdateFieldMetadataAnswer>;
  /** Return the statistics of a table. Reads only the manifest of the latest version. 404 (code 4) if the table does not exist. Requires the role `reader` on the object in the path. */
  readonly getTableStats: (request: GetTableStatsRequest, options?: CallOptions) => Promise<GetTableStatsAnswer>;
  /** Add columns to a table. A column has an SQL expression, whose values are written at once, or a function or `computed` expression, which a job fills. 400 if a column of that name exists. Requires the role `writer` on the object in the path. */
  readonly alterTableAddColumns: (
    request: AlterTableAddColumnsRequest,
    options?: CallOptions,
  ) => Promise<AlterTableAddColumnsAnswer>;
  /** Change columns of a table. Renames a column, or changes its type or whether it may be null. An unknown column is refused. Requires the role `writer` on the object in the path. */
  readonly alterTableAlterColumns: (
    request: AlterTableAlterColumnsRequest,
    options?: CallOptions,
  ) => Promise<AlterTableAlterColumnsAnswer>;
  /** Drop columns of a table. Commits a version without the columns; earlier versions keep them. An unknown column is refused. Requires the role `writer` on the object in the path. */
  readonly alterTableDropColumns: (
    request: AlterTableDropColumnsRequest,
    options?: CallOptions,
  ) => Promise<AlterTableDropColumnsAnswer>;
  /** Commit a version of a table. The staged manifest becomes the version. Only the highest number plus 1 is accepted: 409 (code 14) means that another writer was first, so read the table again. The same manifest path is a safe retry. Requires the role `writer` on the object in the path. A repeated request has the same result, so it can be retried. */
  readonly createTableVersion: (
    request: CreateTableVersionRequest,
    options?: CallOptions,
  ) => Promise<CreateTableVersionAnswer>;
  /** List the versions of a table, oldest first. Returns the records of a branch in pages, with `descending` the latest first. 404 (code 22) for an unknown branch. Requires the role `reader` on the object in the path. */
  readonly listTableVersions: (
    request: ListTableVersionsRequest,
    options?: CallOptions,
  ) => Promise<ListTableVersionsAnswer>;
  /** Describe a version of a table; the latest one by default. 404 (code 11) if the version has no record. Requires the role `reader` on the object in the path. */
  readonly describeTableVersion: (
    request: DescribeTableVersionRequest,
    options?: CallOptions,
  ) => Promise<DescribeTableVersionAnswer>;
  /** Delete version records of a table and keep its data. Ranges include their start and exclude their end; `end_version` -1 means through the latest. Missing versions are ignored. Files of the table are never deleted. Requires the role `writer` on the object in the path. */
  readonly batchDeleteTableVersions: (
    request: BatchDeleteTableVersionsRequest,
    options?: CallOptions,
  ) => Promise<BatchDeleteTableVersionsAnswer>;
  /** Commit versions of several tables, all or none. If one commit is rejected, none has an effect, and the response is the error of that commit. Requires the role `writer` on the objects that the body names. */
  readonly batchCreateTableVersions: (
    request: BatchCreateTableVersionsRequest,
    options?: CallOptions,
  ) => Promise<BatchCreateTableVersionsAnswer>;
  /** Commit a batch of table operations, all or none. If one operation is rejected, none has an effect, and the response is the error of that operation. Requires the role `writer` on the objects that the body names. */
  readonly batchCommitTables: (
    request: BatchCommitTablesRequest,
    options?: CallOptions,
  ) => Promise<BatchCommitTablesAnswer>;
  /** Describe a transaction. Jobs and all recorded changes are transactions. 404 (code 10) if no such transaction is recorded. Requires the role `reader` on the object in the path. */
  readonly describeTransaction: (
    request: DescribeTransactionRequest,
    options?: CallOptions,
  ) => Promise<DescribeTransactionAnswer>;
  /** Apply actions to a transaction, all or none. Queued may become Running, Failed or Canceled; Running may become Succeeded, Failed or Canceled. Any other change is 409 and names both states. If one action is refused, none is applied. Requires the role `writer` on the object in the path. */
  readonly alterTransaction: (
    request: AlterTransactionRequest,
    options?: CallOptions,
  ) => Promise<AlterTransactionAnswer>;
  /** Create a table from an Arrow stream. Writes the rows of the body as version 1. 409 (code 5) if the table exists, unless `mode` says otherwise. Requires the role `writer` on the object in the path. */
  readonly createTable: (request: CreateTableRequest, options?: CallOptions) => Promise<CreateTableAnswer>;
  /** Insert rows into a table. Appends the rows of the body, or replaces all rows. 400 if their schema does not match the table. Requires the role `writer` on the object in the path. */
  readonly insertIntoTable: (request: InsertIntoTableRequest, options?: CallOptions) => Promise<InsertIntoTableAnswer>;
  /** Merge rows into a table. Updates rows with an equal key and inserts others, according to the query parameters. Requires the role `writer` on the object in the path. */
  readonly mergeInsertIntoTable: (
    request: MergeInsertIntoTableRequest,
    options?: CallOptions,
  ) => Promise<MergeInsertIntoTableAnswer>;
  /** Update rows of a table. Sets columns to SQL expressions where `predicate` is true, and commits a version. 400 for invalid SQL. Requires the role `writer` on the object in the path. */
  readonly updateTable: (request: UpdateTableRequest, options?: CallOptions) => Promise<UpdateTableAnswer>;
  /** Delete rows of a table. Deletes the rows for which `predicate` is true, and commits a version. Earlier versions keep them. Requires the role `writer` on the object in the path. */
  readonly deleteFromTable: (request: DeleteFromTableRequest, options?: CallOptions) => Promise<DeleteFromTableAnswer>;
  /** Query a table; the response is an Arrow file. Selects rows by a filter, a vector, a text, or a combination. 400 names the field or the SQL that is invalid. Requires the role `reader` on the object in the path. */
  readonly queryTable: (request: QueryTableRequest, options?: CallOptions) => Promise<QueryTableAnswer>;
  /** Count the rows of a table. Counts all rows, or those for which `predicate` is true. Requires the role `reader` on the object in the path. */
  readonly countTableRows: (request: CountTableRowsRequest, options?: CallOptions) => Promise<CountTableRowsAnswer>;
  /** Explain the plan of a query. Does not run the query. The plan is text for people, and its form may change. Requires the role `reader` on the object in the path. */
  readonly explainTableQueryPlan: (
    request: ExplainTableQueryPlanRequest,
    options?: CallOptions,
  ) => Promise<ExplainTableQueryPlanAnswer>;
  /** Run a query and return its plan with metrics. Runs the query without returning its rows. The plan is text for people, and its form may change. Requires the role `reader` on the object in the path. */
  readonly analyzeTableQueryPlan: (
    request: AnalyzeTableQueryPlanRequest,
    options?: CallOptions,
  ) => Promise<AnalyzeTableQueryPlanAnswer>;
  /** Create an index on a column of a table. The catalog builds the index itself. BuildTableIndex builds large ones on Ray. Requires the role `writer` on the object in the path. */
  readonly createTableIndex: (
    request: CreateTableIndexRequest,
    options?: CallOptions,
  ) => Promise<CreateTableIndexAnswer>;
  /** Create a scalar index on a column of a table. The catalog builds the index itself. BuildTableIndex builds large ones on Ray. Requires the role `writer` on the object in the path. */
  readonly createTableScalarIndex: (
    request: CreateTableScalarIndexRequest,
    options?: CallOptions,
  ) => Promise<CreateTableScalarIndexAnswer>;
  /** List the indices of a table. Returns the columns and the type of each index. 404 (code 4) if the table does not exist. Requires the role `reader` on the object in the path. */
  readonly listTableIndices: (
    request: ListTableIndicesRequest,
    options?: CallOptions,
  ) => Promise<ListTableIndicesAnswer>;
  /** Return the statistics of an index. Returns the numbers of indexed and unindexed rows. 404 (code 6) if the index does not exist. Requires the role `reader` on the object in the path. */
  readonly describeTableIndexStats: (
    request: DescribeTableIndexStatsRequest,
    options?: CallOptions,
  ) => Promise<DescribeTableIndexStatsAnswer>;
  /** Drop an index of a table. Commits a version without the index. 404 (code 6) if the index does not exist. Requires the role `writer` on the object in the path. */
  readonly dropTableIndex: (request: DropTableIndexRequest, options?: CallOptions) => Promise<DropTableIndexAnswer>;
  /** List the tags of a table. Returns the tags of all branches in pages. Requires the role `reader` on the object in the path. */
  readonly listTableTags: (request: ListTableTagsRequest, options?: CallOptions) => Promise<ListTableTagsAnswer>;
  /** Return the version of a tag. 404 (code 8) if the tag does not exist. Requires the role `reader` on the object in the path. */
  readonly getTableTagVersion: (
    request: GetTableTagVersionRequest,
    options?: CallOptions,
  ) => Promise<GetTableTagVersionAnswer>;
  /** Tag a version of a table. Tagged versions are kept by clean-ups. 409 (code 9) if the tag exists: UpdateTableTag moves it. Requires the role `writer` on the object in the path. */
  readonly createTableTag: (request: CreateTableTagRequest, options?: CallOptions) => Promise<CreateTableTagAnswer>;
  /** Move a tag to another version. 404 (code 8) if the tag does not exist, and 404 (code 11) if the version does not. Requires the role `writer` on the object in the path. */
  readonly updateTableTag: (request: UpdateTableTagRequest, options?: CallOptions) => Promise<UpdateTableTagAnswer>;
  /** Delete a tag of a table. The version stays until a clean-up. 404 (code 8) if the tag does not exist. Requires the role `writer` on the object in the path. */
  readonly deleteTableTag: (request: DeleteTableTagRequest, options?: CallOptions) => Promise<DeleteTableTagAnswer>;
  /** List the branches of a table. Returns each branch with its parent and the version at which it begins, in pages. Requires the role `reader` on the object in the path. */
  readonly listTableBranches: (
    request: ListTableBranchesRequest,
    options?: CallOptions,
  ) => Promise<ListTableBranchesAnswer>;
  /** Create a branch of a table. Begins at a version of another branch, without copying data. 409 (code 23) if the branch exists. Requires the role `writer` on the object in the path. */
  readonly createTableBranch: (
    request: CreateTableBranchRequest,
    options?: CallOptions,
  ) => Promise<CreateTableBranchAnswer>;
  /** Delete a branch of a table with its data. 404 (code 22) if the branch does not exist, and 409 (code 19) while a tag or another branch uses it. Requires the role `writer` on the object in the path. */
  readonly deleteTableBranch: (
    request: DeleteTableBranchRequest,
    options?: CallOptions,
  ) => Promise<DeleteTableBranchAnswer>;
  /** Create a materialized view, which jobs fill. Creates the empty table of the view; RefreshMaterializedView fills it. The caller also needs the role `reader` on the source. Requires the role `writer` on the object in the path. */
  readonly createMaterializedView: (
    request: CreateMaterializedViewRequest,
    options?: CallOptions,
  ) => Promise<CreateMaterializedViewAnswer>;
  /** Open a job that refreshes a materialized view. Returns the id of the job, which a runner claims. 409 while a refresh with other parameters is open. Requires the role `writer` on the object in the path. */
  readonly refreshMaterializedView: (
    request: RefreshMaterializedViewRequest,
    options?: CallOptions,
  ) => Promise<RefreshMaterializedViewAnswer>;
}

export type DescribeCallerRequest = Request<"describeCaller">;

export type DescribeCallerAnswer = Answer<"describeCaller"> & {
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
  /** The grants. */
  readonly grants?: unknown;
};

export type ListPrincipalsRequest = Request<"listPrincipals"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
};

export type ListPrincipalsAnswer = Answer<"listPrincipals"> & {
  /** The principals. */
  readonly principals?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type CreateApiKeyRequest = Request<"createApiKey"> & {
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
  /** A role to grant to the principal in the same transaction. */
  readonly grant?: unknown;
};

export type CreateApiKeyAnswer = Answer<"createApiKey"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** The id of the key, which is not secret. */
  readonly api_key_id?: unknown;
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
  /** The API key. The catalog does not store it. */
  readonly key?: unknown;
};

export type ListApiKeysRequest = Request<"listApiKeys"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
};

export type ListApiKeysAnswer = Answer<"listApiKeys"> & {
  /** The API keys. */
  readonly api_keys?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type RevokeApiKeyRequest = Request<"revokeApiKey"> & {
  /** The id of the key, which is not secret. */
  readonly api_key_id?: unknown;
};

export type RevokeApiKeyAnswer = Answer<"revokeApiKey"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ListGrantsRequest = Request<"listGrants"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
};

export type ListGrantsAnswer = Answer<"listGrants"> & {
  /** The grants. */
  readonly grants?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type PutGrantRequest = Request<"putGrant"> & {
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
  /** The role. */
  readonly role?: unknown;
};

export type PutGrantAnswer = Answer<"putGrant"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type RevokeGrantRequest = Request<"revokeGrant"> & {
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
};

export type RevokeGrantAnswer = Answer<"revokeGrant"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ListTransactionsRequest = Request<"listTransactions"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** Only transactions that change the table with this identifier. */
  readonly table?: unknown;
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
  /** Statuses: Queued, Running, Succeeded, Failed, Canceled, separated by commas. */
  readonly status?: unknown;
  /** Only transactions since this time, in milliseconds since the epoch. */
  readonly since_millis?: unknown;
  /** Only transactions before this time, in milliseconds since the epoch. */
  readonly until_millis?: unknown;
  /** Sorts the oldest first. */
  readonly ascending?: unknown;
};

export type ListTransactionsAnswer = Answer<"listTransactions"> & {
  /** The transactions. */
  readonly transactions?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type OpenJobRequest = Request<"openJob"> & {
  /** The column that the job fills. */
  readonly column?: unknown;
};

export type OpenJobAnswer = Answer<"openJob">;

export type ListJobsRequest = Request<"listJobs"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** Only jobs on the table with this identifier. */
  readonly table?: unknown;
  /** The owner of an API key, or `oidc:` and the subject of a token. */
  readonly principal?: unknown;
  /** Statuses: Queued, Running, Succeeded, Failed, Canceled, separated by commas. */
  readonly status?: unknown;
  /** Sorts the oldest first. */
  readonly ascending?: unknown;
};

export type ListJobsAnswer = Answer<"listJobs"> & {
  /** The jobs. */
  readonly jobs?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type DescribeJobRequest = Request<"describeJob">;

export type DescribeJobAnswer = Answer<"describeJob"> & {
  /** The job. */
  readonly job?: unknown;
};

export type CancelJobRequest = Request<"cancelJob">;

export type CancelJobAnswer = Answer<"cancelJob"> & {
  /** The job. */
  readonly job?: unknown;
};

export type RetryJobRequest = Request<"retryJob">;

export type RetryJobAnswer = Answer<"retryJob">;

export type DescribeJobLogRequest = Request<"describeJobLog">;

export type DescribeJobLogAnswer = Answer<"describeJobLog"> & {
  /** The last lines of the output. */
  readonly lines?: unknown;
};

export type ListJobErrorsRequest = Request<"listJobErrors">;

export type ListJobErrorsAnswer = Answer<"listJobErrors"> & {
  /** The errors. */
  readonly errors?: unknown;
};

export type ListJobDefinitionsRequest = Request<"listJobDefinitions">;

export type ListJobDefinitionsAnswer = Answer<"listJobDefinitions"> & {
  /** Geneva's definitions of manifests that the caller may read. */
  readonly manifests?: unknown;
  /** Geneva's definitions of clusters that the caller may read. */
  readonly clusters?: unknown;
  /** The Ray clusters in the runner's file that the catalog knows. */
  readonly runner_clusters?: unknown;
};

export type ClaimJobAttemptRequest = Request<"claimJobAttempt"> & {
  /** The latest attempt that the caller knows; 0 for the first one. */
  readonly after?: unknown;
  /** The place where the attempt will run. */
  readonly platform?: unknown;
};

export type ClaimJobAttemptAnswer = Answer<"claimJobAttempt"> & {
  /** The job. */
  readonly job?: unknown;
};

export type StartJobAttemptRequest = Request<"startJobAttempt"> & {
  /** The number of the attempt, which must be the latest one. */
  readonly attempt?: unknown;
  /** A random text that identifies the process. No other process can start the attempt. */
  readonly claim?: unknown;
};

export type StartJobAttemptAnswer = Answer<"startJobAttempt"> & {
  /** The job. */
  readonly job?: unknown;
};

export type HeartbeatJobAttemptRequest = Request<"heartbeatJobAttempt"> & {
  /** The number of the attempt, which must be the latest one. */
  readonly attempt?: unknown;
  /** The claim of the process that runs the attempt; absent for the runner. */
  readonly claim?: unknown;
  /** All counts of the progress. */
  readonly progress?: unknown;
  /** The last lines of its output. */
  readonly log_tail?: unknown;
  /** The reason of a wait; empty when the attempt no longer waits. */
  readonly reason?: unknown;
};

export type HeartbeatJobAttemptAnswer = Answer<"heartbeatJobAttempt"> & {
  /** The job. */
  readonly job?: unknown;
};

export type ReleaseJobAttemptRequest = Request<"releaseJobAttempt"> & {
  /** The number of the attempt, which must be the latest one. */
  readonly attempt?: unknown;
};

export type ReleaseJobAttemptAnswer = Answer<"releaseJobAttempt"> & {
  /** The job. */
  readonly job?: unknown;
};

export type FinishJobAttemptRequest = Request<"finishJobAttempt"> & {
  /** The number of the attempt, which must be the latest one. */
  readonly attempt?: unknown;
  /** The claim of the process that runs the attempt; absent for the runner. */
  readonly claim?: unknown;
  /** The status of the job; absent if another attempt may follow. */
  readonly status?: unknown;
  /** Why the attempt failed. */
  readonly reason?: unknown;
  /** All counts of the progress. */
  readonly progress?: unknown;
  /** The result of a successful job. */
  readonly result?: unknown;
  /** The last lines of its output. */
  readonly log_tail?: unknown;
};

export type FinishJobAttemptAnswer = Answer<"finishJobAttempt"> & {
  /** The job. */
  readonly job?: unknown;
};

export type ListJobAttemptsRequest = Request<"listJobAttempts">;

export type ListJobAttemptsAnswer = Answer<"listJobAttempts"> & {
  /** The attempts, the earliest first. */
  readonly attempts?: unknown;
};

export type CompactTableRequest = Request<"compactTable"> & {
  /** Only `main`: jobs do not maintain other branches. */
  readonly branch?: unknown;
  /** The maximum number of concurrent Ray tasks; limited only by the Ray cluster when absent. */
  readonly concurrency?: unknown;
  /** The Ray cluster of that name in the runner's file, or in Geneva's definitions. */
  readonly cluster?: unknown;
  /** The number of rows of a fragment after the compaction; 1048576 when absent. */
  readonly target_rows_per_fragment?: unknown;
};

export type CompactTableAnswer = Answer<"compactTable">;

export type BuildTableIndexRequest = Request<"buildTableIndex"> & {
  /** Only `main`: jobs do not maintain other branches. */
  readonly branch?: unknown;
  /** The maximum number of concurrent Ray tasks; limited only by the Ray cluster when absent. */
  readonly concurrency?: unknown;
  /** The Ray cluster of that name in the runner's file, or in Geneva's definitions. */
  readonly cluster?: unknown;
  /** The name of the column. */
  readonly column?: unknown;
  /** One of BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER, FTS, INVERTED, RTREE, IVF_FLAT, IVF_PQ, IVF_SQ, IVF_RQ, IVF_HNSW_FLAT, IVF_HNSW_PQ, IVF_HNSW_SQ; case-insensitive, PascalCase or snake_case. */
  readonly index_type?: unknown;
  /** The name of the index; the column with the suffix `_idx` when absent. */
  readonly name?: unknown;
  /** One of l2, cosine, dot, hamming; case-insensitive, PascalCase or snake_case. */
  readonly distance_type?: unknown;
  /** The number of partitions. */
  readonly num_partitions?: unknown;
  /** The number of parts of a vector for product quantization. */
  readonly num_sub_vectors?: unknown;
};

export type BuildTableIndexAnswer = Answer<"buildTableIndex">;

export type CleanUpTableRequest = Request<"cleanUpTable"> & {
  /** Only `main`: jobs do not maintain other branches. */
  readonly branch?: unknown;
  /** The Ray cluster of that name in the runner's file, or in Geneva's definitions. */
  readonly cluster?: unknown;
  /** The minimum age in seconds of versions to delete; 14 days when absent. */
  readonly older_than_seconds?: unknown;
  /** The number of the latest versions to keep regardless of their age; 1 when absent. */
  readonly keep_versions?: unknown;
};

export type CleanUpTableAnswer = Answer<"cleanUpTable">;

export type PutTablePolicyRequest = Request<"putTablePolicy"> & {
  /** Compacts the table when enough small fragments exist. */
  readonly auto_compact?: unknown;
  /** Builds an index when enough new fragments exist, for each column. */
  readonly auto_build_index?: unknown;
  /** Deletes old versions when enough versions exist. */
  readonly auto_clean_up?: unknown;
};

export type PutTablePolicyAnswer = Answer<"putTablePolicy"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ListPolicyProblemsRequest = Request<"listPolicyProblems">;

export type ListPolicyProblemsAnswer = Answer<"listPolicyProblems"> & {
  /** The problems. */
  readonly problems?: unknown;
};

export type CreateJobKeyRequest = Request<"createJobKey"> & {
  /** The job's latest attempt. */
  readonly attempt?: unknown;
};

export type CreateJobKeyAnswer = Answer<"createJobKey">;

export type SearchNamespaceRequest = Request<"searchNamespace"> & {
  /** A part of a name, in any case; or the end of a namespace or a table, the delimiter and the beginning of a name in it. */
  readonly name?: unknown;
  /** The maximum number of each; 200 at most. */
  readonly limit?: unknown;
};

export type SearchNamespaceAnswer = Answer<"searchNamespace"> & {
  /** The namespaces, best matches first: the same name, the same beginning, others. */
  readonly namespaces?: unknown;
  /** The tables, best matches first. */
  readonly tables?: unknown;
  /** The columns, best matches first. A commit's columns are found after about a minute. */
  readonly columns?: unknown;
};

export type ListDroppedTablesRequest = Request<"listDroppedTables"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
};

export type ListDroppedTablesAnswer = Answer<"listDroppedTables"> & {
  /** The dropped tables. */
  readonly dropped_tables?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type UndropTableRequest = Request<"undropTable"> & {
  /** The id from ListDroppedTables. The path contains the identifier that the table had. */
  readonly dropped_id?: unknown;
  /** The identifier after the undrop; the earlier one when absent. */
  readonly new_id?: unknown;
};

export type UndropTableAnswer = Answer<"undropTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
};

export type ProtectTableRequest = Request<"protectTable">;

export type ProtectTableAnswer = Answer<"protectTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** True if the table cannot be dropped. */
  readonly protected?: unknown;
};

export type UnprotectTableRequest = Request<"unprotectTable">;

export type UnprotectTableAnswer = Answer<"unprotectTable"> & {
  /** The id of the transaction that records the change. */
  readonly transaction_id?: unknown;
  /** True if the table cannot be dropped. */
  readonly protected?: unknown;
};

export type ListTableRowsRequest = Request<"listTableRows"> & {
  /** The maximum number of rows: 20 when absent, 100 at most. */
  readonly limit?: unknown;
  /** The number of rows to skip. */
  readonly offset?: unknown;
  /** The branch to read; main when absent. */
  readonly branch?: unknown;
  /** The version to read; the latest when absent. */
  readonly version?: unknown;
  /** A condition on rows in SQL, such as `year > 1990`. */
  readonly filter?: unknown;
  /** The name of a top-level column that orders the rows. */
  readonly sort?: unknown;
  /** Orders rows with the greatest values first. */
  readonly descending?: unknown;
  /** The name of a column of vectors. Rows are ordered by their distance to the vector of `like_row`. */
  readonly like?: unknown;
  /** The number of the example among the rows that `filter` and `sort` select; 0 when absent. */
  readonly like_row?: unknown;
  /** The names of top-level columns; the first 64 when absent. */
  readonly columns?: unknown;
  /** Truncates values only after 100000 characters or 4096 items, and returns one row. */
  readonly whole?: unknown;
};

export type ListTableRowsAnswer = Answer<"listTableRows"> & {
  /** The number of the read version. */
  readonly version?: unknown;
  /** The columns of the rows, in their order. */
  readonly columns?: unknown;
  /** The number of the table's columns. */
  readonly columns_in_all?: unknown;
  /** The values of a row, in the order of the columns. */
  readonly rows?: unknown;
  /** The offset of the first omitted row, if the rows exceed 196608 bytes. */
  readonly next_offset?: unknown;
};

export type ListTableHistoryRequest = Request<"listTableHistory"> & {
  /** The `page_token` of the previous response. */
  readonly page_token?: unknown;
  /** The maximum number of items in the response, at least 1. */
  readonly limit?: unknown;
  /** The branch; main when absent. */
  readonly branch?: unknown;
};

export type ListTableHistoryAnswer = Answer<"listTableHistory"> & {
  /** The versions. */
  readonly versions?: unknown;
  /** The token of the next page; absent on the last page. */
  readonly page_token?: unknown;
};

export type ListTableViewsRequest = Request<"listTableViews">;

export type ListTableViewsAnswer = Answer<"listTableViews"> & {
  /** The views that were created through the catalog. */
  readonly views?: unknown;
};

export interface ManagementClient {
  /** Describe the caller and its roles. Needs a valid credential but no role. */
  readonly describeCaller: (request: DescribeCallerRequest, options?: CallOptions) => Promise<DescribeCallerAnswer>;
  /** List the principals that have an API key or a role, by name. Returns principals in pages of an alphabetical order. Requires the role `admin` on the catalog. */
  readonly listPrincipals: (request: ListPrincipalsRequest, options?: CallOptions) => Promise<ListPrincipalsAnswer>;
  /** Create an API key for a principal; only this response contains it. Store the key at once: the catalog keeps only its hash. Requires the role `admin` on the catalog. */
  readonly createApiKey: (request: CreateApiKeyRequest, options?: CallOptions) => Promise<CreateApiKeyAnswer>;
  /** List the API keys without their secrets, the oldest first. Returns keys in pages, with the time at which each was created. Requires the role `admin` on the catalog. */
  readonly listApiKeys: (request: ListApiKeysRequest, options?: CallOptions) => Promise<ListApiKeysAnswer>;
  /** Revoke an API key. Effective within a second, also for tokens of the key. 404 if no such key exists. Requires the role `admin` on the catalog. */
  readonly revokeApiKey: (request: RevokeApiKeyRequest, options?: CallOptions) => Promise<RevokeApiKeyAnswer>;
  /** List the grants on a namespace and its descendants, by principal. Returns grants in pages. Requires the role `admin` on the object in the path. */
  readonly listGrants: (request: ListGrantsRequest, options?: CallOptions) => Promise<ListGrantsAnswer>;
  /** Grant a principal a role on a namespace; the grant replaces an earlier one. The role is effective within a second. Requires the role `admin` on the object in the path. */
  readonly putGrant: (request: PutGrantRequest, options?: CallOptions) => Promise<PutGrantAnswer>;
  /** Revoke the role of a principal on a namespace. Effective within a second. 404 if the principal has no role on exactly this namespace. Requires the role `admin` on the object in the path. */
  readonly revokeGrant: (request: RevokeGrantRequest, options?: CallOptions) => Promise<RevokeGrantAnswer>;
  /** List the transactions of a namespace and its descendants, latest first. Returns transactions in pages, filtered by object, principal, status or time. Requires the role `reader` on the object in the path. */
  readonly listTransactions: (
    request: ListTransactionsRequest,
    options?: CallOptions,
  ) => Promise<ListTransactionsAnswer>;
  /** Open a job on a table that the caller itself runs and updates with AlterTransaction. For programs that run the work themselves: no runner claims this job, and its opener sets its status with AlterTransaction. Requires the role `writer` on the object in the path. */
  readonly openJob: (request: OpenJobRequest, options?: CallOptions) => Promise<OpenJobAnswer>;
  /** List the jobs of a namespace and its descendants, latest first. Returns jobs in pages, filtered by table, status or time of change. Requires the role `reader` on the object in the path. */
  readonly listJobs: (request: ListJobsRequest, options?: CallOptions) => Promise<ListJobsAnswer>;
  /** Describe a job with its parameters, its progress and its platform. 404 (code 10) if the job does not exist. Requires the role `reader` on the object in the path. */
  readonly describeJob: (request: DescribeJobRequest, options?: CallOptions) => Promise<DescribeJobAnswer>;
  /** Cancel a job that has not ended; its attempt stops within seconds. 409 if the job has ended. Rows that it has committed stay. Requires the role `writer` on the object in the path. */
  readonly cancelJob: (request: CancelJobRequest, options?: CallOptions) => Promise<CancelJobAnswer>;
  /** Open a failed or canceled job again with the same parameters; it fills the rows that still have no value. Returns the id of a new job. 409 if the job has not ended or has succeeded. Requires the role `writer` on the object in the path. */
  readonly retryJob: (request: RetryJobRequest, options?: CallOptions) => Promise<RetryJobAnswer>;
  /** Return the last lines of a job's output. Returns the lines of the latest attempt. They are the last ones that its runner sent. Requires the role `reader` on the object in the path. */
  readonly describeJobLog: (request: DescribeJobLogRequest, options?: CallOptions) => Promise<DescribeJobLogAnswer>;
  /** List the first 100 errors that Geneva recorded for batches or rows of a job. Reads Geneva's table of errors. 406 if operations on rows are disabled. Requires the role `reader` on the object in the path. */
  readonly listJobErrors: (request: ListJobErrorsRequest, options?: CallOptions) => Promise<ListJobErrorsAnswer>;
  /** List the names that requests for jobs can use for manifests and for Ray clusters. Returns the names of Geneva's manifests and clusters in the catalog, and of the runner's Ray clusters. Requires the role `reader` on the object in the path. */
  readonly listJobDefinitions: (
    request: ListJobDefinitionsRequest,
    options?: CallOptions,
  ) => Promise<ListJobDefinitionsAnswer>;
  /** Claim the next attempt of a job; only one of several runners succeeds. 409 means that another runner holds the attempt or that the job has ended: continue with the next job. Requires the role `writer` on the object in the path. */
  readonly claimJobAttempt: (request: ClaimJobAttemptRequest, options?: CallOptions) => Promise<ClaimJobAttemptAnswer>;
  /** Start an attempt in one process, and set the job to Running; an ended job stays unchanged. 409 means that a later attempt has superseded this one: stop. Requires the role `writer` on the object in the path. A repeated request has the same result, so it can be retried. */
  readonly startJobAttempt: (request: StartJobAttemptRequest, options?: CallOptions) => Promise<StartJobAttemptAnswer>;
  /** Report the progress and the output of an attempt; after the start, only requests with the claim count as heartbeats; an ended job stays unchanged. Reports progress and output. The response says whether the job was canceled; 409 means that a later attempt has superseded this one: stop. Requires the role `writer` on the object in the path. A repeated request has the same result, so it can be retried. */
  readonly heartbeatJobAttempt: (
    request: HeartbeatJobAttemptRequest,
    options?: CallOptions,
  ) => Promise<HeartbeatJobAttemptAnswer>;
  /** Remove an attempt that has not started; it does not count as an attempt. For an attempt whose start failed for reasons outside the job. Requires the role `writer` on the object in the path. */
  readonly releaseJobAttempt: (
    request: ReleaseJobAttemptRequest,
    options?: CallOptions,
  ) => Promise<ReleaseJobAttemptAnswer>;
  /** End an attempt, and the job if a status is specified; an ended job stays unchanged. 409 means that a later attempt has superseded this one. Requires the role `writer` on the object in the path. A repeated request has the same result, so it can be retried. */
  readonly finishJobAttempt: (
    request: FinishJobAttemptRequest,
    options?: CallOptions,
  ) => Promise<FinishJobAttemptAnswer>;
  /** List the attempts of a job with their output, the earliest first. Returns the reason and the last output of each attempt. Requires the role `reader` on the object in the path. */
  readonly listJobAttempts: (request: ListJobAttemptsRequest, options?: CallOptions) => Promise<ListJobAttemptsAnswer>;
  /** Open a job that merges small fragments and removes deleted rows. Returns the id of the job, which a runner claims. A job with the same parameters that is open already is returned. Requires the role `writer` on the object in the path. */
  readonly compactTable: (request: CompactTableRequest, options?: CallOptions) => Promise<CompactTableAnswer>;
  /** Open a job that builds an index on Ray, and replaces one of the same name. Returns the id of the job, which a runner claims. The column must exist and suit the type of the index. Requires the role `writer` on the object in the path. */
  readonly buildTableIndex: (request: BuildTableIndexRequest, options?: CallOptions) => Promise<BuildTableIndexAnswer>;
  /** Open a job that deletes old versions of main and the files that no other version uses. Returns the id of the job, which a runner claims. Tagged versions and the latest ones are kept. Requires the role `writer` on the object in the path. */
  readonly cleanUpTable: (request: CleanUpTableRequest, options?: CallOptions) => Promise<CleanUpTableAnswer>;
  /** Replace the policy by which the catalog opens maintenance jobs for a table. Absent parts are removed. 400 for a column that its index does not suit. Requires the role `writer` on the object in the path. */
  readonly putTablePolicy: (request: PutTablePolicyRequest, options?: CallOptions) => Promise<PutTablePolicyAnswer>;
  /** List the parts of a table's policy whose jobs cannot be opened, each with the reason. An empty list means that every part of the policy can open its jobs. Requires the role `reader` on the object in the path. */
  readonly listPolicyProblems: (
    request: ListPolicyProblemsRequest,
    options?: CallOptions,
  ) => Promise<ListPolicyProblemsAnswer>;
  /** Create the API key of an attempt, limited to the objects of the job; it is invalid after the end of the job or the begin of another attempt. The key is limited to the attempt, the table and the rights of the opener, and ends with the attempt. Requires the role `runner` on the object in the path. */
  readonly createJobKey: (request: CreateJobKeyRequest, options?: CallOptions) => Promise<CreateJobKeyAnswer>;
  /** Find the namespaces, tables and columns below a namespace by a part of their name. Returns the best matches first, without pages: a longer name finds fewer. Requires the role `reader` on the object in the path. */
  readonly searchNamespace: (request: SearchNamespaceRequest, options?: CallOptions) => Promise<SearchNamespaceAnswer>;
  /** List the dropped tables of a namespace and its descendants that can be undropped. Returns the time at which each table is purged. Requires the role `reader` on the object in the path. */
  readonly listDroppedTables: (
    request: ListDroppedTablesRequest,
    options?: CallOptions,
  ) => Promise<ListDroppedTablesAnswer>;
  /** Undrop a table with all its versions. 404 (code 4) after the table was purged, and 409 (code 5) if another table has its name. Requires the role `writer` on the object in the path. */
  readonly undropTable: (request: UndropTableRequest, options?: CallOptions) => Promise<UndropTableAnswer>;
  /** Protect a table from drop and deregister. Drops and deregistrations of the table are then 409 (code 19). Requires the role `admin` on the object in the path. */
  readonly protectTable: (request: ProtectTableRequest, options?: CallOptions) => Promise<ProtectTableAnswer>;
  /** Allow a table to be dropped again. A table without protection stays as it is. Requires the role `admin` on the object in the path. */
  readonly unprotectTable: (request: UnprotectTableRequest, options?: CallOptions) => Promise<UnprotectTableAnswer>;
  /** List rows of a table for people, with truncated values. Long values are truncated, and `length` has their whole length. Request one value with `whole` to read all of it. Requires the role `reader` on the object in the path. */
  readonly listTableRows: (request: ListTableRowsRequest, options?: CallOptions) => Promise<ListTableRowsAnswer>;
  /** List the versions of a table with the operation and the principal of each commit, latest first. Returns commits of a branch in pages. Versions that were committed outside the catalog have no operation. Requires the role `reader` on the object in the path. */
  readonly listTableHistory: (
    request: ListTableHistoryRequest,
    options?: CallOptions,
  ) => Promise<ListTableHistoryAnswer>;
  /** List the materialized views whose source is a table, as far as the caller may read them. Returns only views that the caller may read. Requires the role `reader` on the object in the path. */
  readonly listTableViews: (request: ListTableViewsRequest, options?: CallOptions) => Promise<ListTableViewsAnswer>;
}
