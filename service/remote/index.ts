import type { RemoteContracts } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import * as handlers from "../operations/index.ts";
import { remoteAlterTableAddColumns } from "./add-remote-columns.ts";
import { cancelRemoteJob } from "./cancel-remote-job.ts";
import { remoteDeleteFromTable, remoteMergeInsertIntoTable, remoteUpdateTable } from "./change-remote-rows.ts";
import { describeRemoteJob } from "./describe-remote-job.ts";
import { remoteDescribeTable } from "./describe-remote-table.ts";
import { inDialect } from "./in-dialect.ts";
import { listRemoteJobs } from "./list-remote-jobs.ts";
import { remoteListTableTags } from "./list-remote-table-tags.ts";
import { remoteListTableVersions } from "./list-remote-table-versions.ts";
import { remoteListTables } from "./list-remote-tables.ts";
import { getLsmStats, getLsmWriteSpec } from "./lsm.ts";
import { queryRemoteJobEvents } from "./query-remote-job-events.ts";
import { remoteAnalyzeTableQueryPlan, remoteExplainTableQueryPlan, remoteQueryTable } from "./query-remote-table.ts";
import { refusePause } from "./refuse-pause.ts";
import { prewarmTableData, prewarmTableIndex, remoteCreateTableIndex } from "./remote-table-index.ts";
import { remoteRenameTable } from "./rename-remote-table.ts";

/**
 * The handlers of all operations in the dialect of LanceDB's remote client. Those that the protocol shares use its
 * handlers.
 */
export const remoteHandlers: { readonly [Name in keyof RemoteContracts]: Handler<Name> } = {
  remoteListTables: inDialect(remoteListTables),
  remoteCreateTable: inDialect(handlers.createTable),
  remoteDescribeTable: inDialect(remoteDescribeTable),
  remoteDropTable: inDialect(handlers.dropTable),
  remoteRenameTable: inDialect(remoteRenameTable),
  remoteRestoreTable: inDialect(handlers.restoreTable),
  remoteGetTableStats: inDialect(handlers.getTableStats),
  remoteAlterTableAddColumns: inDialect(remoteAlterTableAddColumns),
  remoteAlterTableAlterColumns: inDialect(handlers.alterTableAlterColumns),
  remoteAlterTableDropColumns: inDialect(handlers.alterTableDropColumns),
  remoteUpdateFieldMetadata: inDialect(handlers.updateFieldMetadata),
  remoteListTableVersions: inDialect(remoteListTableVersions),
  remoteInsertIntoTable: inDialect(handlers.insertIntoTable),
  remoteMergeInsertIntoTable: inDialect(remoteMergeInsertIntoTable),
  remoteUpdateTable: inDialect(remoteUpdateTable),
  remoteDeleteFromTable: inDialect(remoteDeleteFromTable),
  remoteQueryTable: inDialect(remoteQueryTable),
  remoteCountTableRows: inDialect(handlers.countTableRows),
  remoteExplainTableQueryPlan: inDialect(remoteExplainTableQueryPlan),
  remoteAnalyzeTableQueryPlan: inDialect(remoteAnalyzeTableQueryPlan),
  remoteCreateTableIndex: inDialect(remoteCreateTableIndex),
  remoteListTableIndices: inDialect(handlers.listTableIndices),
  remoteDescribeTableIndexStats: inDialect(handlers.describeTableIndexStats),
  remoteDropTableIndex: inDialect(handlers.dropTableIndex),
  prewarmTableIndex: inDialect(prewarmTableIndex),
  prewarmTableData: inDialect(prewarmTableData),
  remoteListTableTags: inDialect(remoteListTableTags),
  remoteGetTableTagVersion: inDialect(handlers.getTableTagVersion),
  remoteCreateTableTag: inDialect(handlers.createTableTag),
  remoteUpdateTableTag: inDialect(handlers.updateTableTag),
  remoteDeleteTableTag: inDialect(handlers.deleteTableTag),
  remoteListTableBranches: inDialect(handlers.listTableBranches),
  remoteCreateTableBranch: inDialect(handlers.createTableBranch),
  remoteDeleteTableBranch: inDialect(handlers.deleteTableBranch),
  cancelRemoteJob,
  describeRemoteJob,
  getLsmStats: inDialect(getLsmStats),
  getLsmWriteSpec: inDialect(getLsmWriteSpec),
  listRemoteJobs,
  pauseRemoteJob: refusePause,
  queryRemoteJobEvents,
  resumeRemoteJob: refusePause,
};
