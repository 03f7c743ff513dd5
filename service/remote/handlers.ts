import type { RemoteContracts } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import { dropTable, getTableStats, restoreTable } from "../operations/table.ts";
import { createTableBranch, deleteTableBranch, listTableBranches } from "../operations/table-branch.ts";
import { alterTableAlterColumns, alterTableDropColumns, updateFieldMetadata } from "../operations/table-columns.ts";
import { countTableRows, createTable, insertIntoTable } from "../operations/table-data.ts";
import { describeTableIndexStats, dropTableIndex, listTableIndices } from "../operations/table-index.ts";
import { createTableTag, deleteTableTag, getTableTagVersion, updateTableTag } from "../operations/table-tag.ts";
import * as job from "./job.ts";
import * as query from "./query.ts";
import * as table from "./table.ts";
import * as tableIndex from "./table-index.ts";

/** The handlers in the dialect of LanceDB's remote client. Operations that the protocol shares use its handlers. */
export const remoteHandlers: {
  readonly [Name in keyof RemoteContracts]: (...args: Parameters<Handler<Name>>) => ReturnType<Handler<Name>>;
} = {
  ...job,
  ...query,
  ...table,
  ...tableIndex,
  remoteCreateTable: createTable,
  remoteDropTable: dropTable,
  remoteRestoreTable: restoreTable,
  remoteGetTableStats: getTableStats,
  remoteAlterTableAlterColumns: alterTableAlterColumns,
  remoteAlterTableDropColumns: alterTableDropColumns,
  remoteUpdateFieldMetadata: updateFieldMetadata,
  remoteInsertIntoTable: insertIntoTable,
  remoteCountTableRows: countTableRows,
  remoteListTableIndices: listTableIndices,
  remoteDescribeTableIndexStats: describeTableIndexStats,
  remoteDropTableIndex: dropTableIndex,
  remoteGetTableTagVersion: getTableTagVersion,
  remoteCreateTableTag: createTableTag,
  remoteUpdateTableTag: updateTableTag,
  remoteDeleteTableTag: deleteTableTag,
  remoteListTableBranches: listTableBranches,
  remoteCreateTableBranch: createTableBranch,
  remoteDeleteTableBranch: deleteTableBranch,
  pauseRemoteJob: job.refusePause,
  resumeRemoteJob: job.refusePause,
};
