import {
  type AnswerOf,
  type AnyContract,
  type AnyRequest,
  contracts,
  managementContracts,
  remoteContracts,
} from "@tiltyard/protocol";
import { batchCommitTables } from "./operations/batch-commit-tables.ts";
import type { AuthorizedCaller, Catalog, Handler, Operations, RenderedJson } from "./operations/handler.ts";
import * as job from "./operations/management/job.ts";
import * as jobAttempt from "./operations/management/job-attempt.ts";
import * as jobFunction from "./operations/management/job-function.ts";
import * as maintenance from "./operations/management/maintenance.ts";
import * as policy from "./operations/management/policy.ts";
import * as principal from "./operations/management/principal.ts";
import * as managedTable from "./operations/management/table.ts";
import * as listedTransaction from "./operations/management/transaction.ts";
import * as materializedView from "./operations/materialized-view.ts";
import * as namespace from "./operations/namespace.ts";
import * as remoteFunction from "./operations/remote/function.ts";
import * as remoteJob from "./operations/remote/job.ts";
import * as remoteQuery from "./operations/remote/query.ts";
import * as remoteSecret from "./operations/remote/secret.ts";
import * as remoteTable from "./operations/remote/table.ts";
import * as remoteTableIndex from "./operations/remote/table-index.ts";
import * as table from "./operations/table.ts";
import * as tableBranch from "./operations/table-branch.ts";
import * as tableColumns from "./operations/table-columns.ts";
import * as tableData from "./operations/table-data.ts";
import * as tableIndex from "./operations/table-index.ts";
import * as tableTag from "./operations/table-tag.ts";
import * as tableVersion from "./operations/table-version.ts";
import * as transaction from "./operations/transaction.ts";

export interface Operation {
  readonly contract: AnyContract;
  /** The type of the handlers binds each of them to its contract. */
  handler(request: AnyRequest, catalog: Catalog, caller: AuthorizedCaller): Promise<unknown>;
}

type Response<Contract extends AnyContract> = AnswerOf<Contract> | RenderedJson<AnswerOf<Contract>>;

/** The handlers by their contracts. A missing one does not compile. LanceDB's client shares some of them. */
const handlers: {
  readonly [Name in keyof Operations]: (...args: Parameters<Handler<Name>>) => Promise<Response<Operations[Name]>>;
} = {
  ...job,
  ...jobAttempt,
  ...jobFunction,
  ...listedTransaction,
  ...maintenance,
  ...managedTable,
  ...materializedView,
  ...namespace,
  ...policy,
  ...principal,
  ...table,
  ...tableBranch,
  ...tableColumns,
  ...tableData,
  ...tableIndex,
  ...tableTag,
  ...tableVersion,
  ...transaction,
  batchCommitTables,
  ...remoteFunction,
  ...remoteJob,
  ...remoteQuery,
  ...remoteSecret,
  ...remoteTable,
  ...remoteTableIndex,
  remoteCreateTable: tableData.createTable,
  remoteDropTable: table.dropTable,
  remoteRestoreTable: table.restoreTable,
  remoteGetTableStats: table.getTableStats,
  remoteAlterTableAlterColumns: tableColumns.alterTableAlterColumns,
  remoteAlterTableDropColumns: tableColumns.alterTableDropColumns,
  remoteUpdateFieldMetadata: tableColumns.updateFieldMetadata,
  remoteInsertIntoTable: tableData.insertIntoTable,
  remoteCountTableRows: tableData.countTableRows,
  remoteListTableIndices: tableIndex.listTableIndices,
  remoteDescribeTableIndexStats: tableIndex.describeTableIndexStats,
  remoteDropTableIndex: tableIndex.dropTableIndex,
  remoteGetTableTagVersion: tableTag.getTableTagVersion,
  remoteCreateTableTag: tableTag.createTableTag,
  remoteUpdateTableTag: tableTag.updateTableTag,
  remoteDeleteTableTag: tableTag.deleteTableTag,
  remoteListTableBranches: tableBranch.listTableBranches,
  remoteCreateTableBranch: tableBranch.createTableBranch,
  remoteDeleteTableBranch: tableBranch.deleteTableBranch,
};

/** All operations: those of the protocol, of management, and of LanceDB's remote client. */
export const operations: readonly Operation[] = Object.entries<AnyContract>({
  ...contracts,
  ...managementContracts,
  ...remoteContracts,
}).map(([name, contract]) => ({ contract, handler: handlers[name as keyof Operations] }));
