import type { AnyContract } from "../contract.ts";
import { contracts } from "../contracts.ts";
import { withSlash } from "./dialect.ts";
import { createFunction, describeFunction, dropFunction, listFunctionErrors, listFunctions } from "./function.ts";
import {
  cancelRemoteJob,
  describeRemoteJob,
  listRemoteJobs,
  pauseRemoteJob,
  queryRemoteJobEvents,
  resumeRemoteJob,
} from "./job.ts";
import { remoteAnalyzeTableQueryPlan, remoteExplainTableQueryPlan, remoteQueryTable } from "./query.ts";
import { remoteDeleteFromTable, remoteMergeInsertIntoTable, remoteUpdateTable } from "./rows.ts";
import { alterSecret, createSecret, describeSecret, dropSecret, listSecrets } from "./secret.ts";
import {
  getLsmStats,
  getLsmWriteSpec,
  getRteSpec,
  getRteStats,
  remoteAlterTableAddColumns,
  remoteCreateTable,
  remoteDescribeTable,
  remoteListTables,
  remoteListTableTags,
  remoteListTableVersions,
  remoteRenameTable,
} from "./table.ts";
import { prewarmTableData, prewarmTableIndex, remoteCreateTableIndex } from "./table-index.ts";

/** The operations on registered Functions and on secrets. */
const functionContracts = {
  describeFunction,
  dropFunction,
  listFunctions,
  createSecret,
  alterSecret,
  describeSecret,
  dropSecret,
  listSecrets,
} as const;

/** The contracts of the client of the catalog: the protocol's, and those on registered Functions and on secrets. */
export const catalogContracts = { ...contracts, ...functionContracts } as const satisfies Record<string, AnyContract>;
export type CatalogContracts = typeof catalogContracts;

/**
 * The contracts of the operations that LanceDB's remote client (`lancedb.connect("db://...", host_override=...)`) calls
 * in its own dialect: operations of the protocol, distinguished by a trailing slash of the path, and additional ones.
 * For namespaces and `backfill_column`, the client uses the protocol.
 */
export const remoteContracts = {
  remoteListTables,
  remoteCreateTable,
  remoteDescribeTable,
  remoteDropTable: withSlash(contracts.dropTable),
  remoteRenameTable,
  remoteRestoreTable: withSlash(contracts.restoreTable),
  remoteGetTableStats: withSlash(contracts.getTableStats),
  remoteAlterTableAddColumns,
  remoteAlterTableAlterColumns: withSlash(contracts.alterTableAlterColumns),
  remoteAlterTableDropColumns: withSlash(contracts.alterTableDropColumns),
  remoteUpdateFieldMetadata: withSlash(contracts.updateFieldMetadata),
  remoteListTableVersions,
  remoteInsertIntoTable: withSlash(contracts.insertIntoTable),
  remoteMergeInsertIntoTable,
  remoteUpdateTable,
  remoteDeleteFromTable,
  remoteQueryTable,
  remoteCountTableRows: withSlash(contracts.countTableRows),
  remoteExplainTableQueryPlan,
  remoteAnalyzeTableQueryPlan,
  remoteCreateTableIndex,
  remoteListTableIndices: withSlash(contracts.listTableIndices),
  remoteDescribeTableIndexStats: withSlash(contracts.describeTableIndexStats),
  remoteDropTableIndex: withSlash(contracts.dropTableIndex),
  prewarmTableIndex,
  prewarmTableData,
  remoteListTableTags,
  remoteGetTableTagVersion: withSlash(contracts.getTableTagVersion),
  remoteCreateTableTag: withSlash(contracts.createTableTag),
  remoteUpdateTableTag: withSlash(contracts.updateTableTag),
  remoteDeleteTableTag: withSlash(contracts.deleteTableTag),
  remoteListTableBranches: withSlash(contracts.listTableBranches),
  remoteCreateTableBranch: withSlash(contracts.createTableBranch),
  remoteDeleteTableBranch: withSlash(contracts.deleteTableBranch),
  getLsmWriteSpec,
  getLsmStats,
  getRteSpec,
  getRteStats,
  createFunction,
  ...functionContracts,
  listFunctionErrors,
  describeRemoteJob,
  cancelRemoteJob,
  pauseRemoteJob,
  resumeRemoteJob,
  listRemoteJobs,
  queryRemoteJobEvents,
} as const satisfies Record<string, AnyContract>;

export type RemoteContracts = typeof remoteContracts;
