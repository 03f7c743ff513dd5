import type { AnyContract } from "./contract.ts";
import { createMaterializedView, refreshMaterializedView } from "./operations/materialized-view.ts";
import {
  createNamespace,
  describeNamespace,
  dropNamespace,
  listAllTables,
  listNamespaces,
  listTables,
  namespaceExists,
} from "./operations/namespace.ts";
import {
  alterTableAddColumns,
  alterTableAlterColumns,
  alterTableBackfillColumns,
  alterTableDropColumns,
  declareTable,
  deregisterTable,
  describeTable,
  dropTable,
  getTableStats,
  registerTable,
  renameTable,
  restoreTable,
  tableExists,
  updateFieldMetadata,
  updateTableSchemaMetadata,
} from "./operations/table.ts";
import { createTableBranch, deleteTableBranch, listTableBranches } from "./operations/table-branch.ts";
import {
  analyzeTableQueryPlan,
  countTableRows,
  createTable,
  deleteFromTable,
  explainTableQueryPlan,
  insertIntoTable,
  mergeInsertIntoTable,
  queryTable,
  updateTable,
} from "./operations/table-data.ts";
import {
  createTableIndex,
  createTableScalarIndex,
  describeTableIndexStats,
  dropTableIndex,
  listTableIndices,
} from "./operations/table-index.ts";
import {
  createTableTag,
  deleteTableTag,
  getTableTagVersion,
  listTableTags,
  updateTableTag,
} from "./operations/table-tag.ts";
import {
  batchCommitTables,
  batchCreateTableVersions,
  batchDeleteTableVersions,
  createTableVersion,
  describeTableVersion,
  listTableVersions,
} from "./operations/table-version.ts";
import { alterTransaction, describeTransaction } from "./operations/transaction.ts";

/** Every operation of the protocol, by its operation id in camelCase. */
export const contracts = {
  createNamespace,
  listNamespaces,
  describeNamespace,
  dropNamespace,
  namespaceExists,
  listTables,
  listAllTables,
  declareTable,
  registerTable,
  describeTable,
  tableExists,
  dropTable,
  deregisterTable,
  renameTable,
  alterTableBackfillColumns,
  restoreTable,
  updateTableSchemaMetadata,
  updateFieldMetadata,
  getTableStats,
  alterTableAddColumns,
  alterTableAlterColumns,
  alterTableDropColumns,
  createTableVersion,
  listTableVersions,
  describeTableVersion,
  batchDeleteTableVersions,
  batchCreateTableVersions,
  batchCommitTables,
  describeTransaction,
  alterTransaction,
  createTable,
  insertIntoTable,
  mergeInsertIntoTable,
  updateTable,
  deleteFromTable,
  queryTable,
  countTableRows,
  explainTableQueryPlan,
  analyzeTableQueryPlan,
  createTableIndex,
  createTableScalarIndex,
  listTableIndices,
  describeTableIndexStats,
  dropTableIndex,
  listTableTags,
  getTableTagVersion,
  createTableTag,
  updateTableTag,
  deleteTableTag,
  listTableBranches,
  createTableBranch,
  deleteTableBranch,
  createMaterializedView,
  refreshMaterializedView,
} as const satisfies Record<string, AnyContract>;

export type Contracts = typeof contracts;
export type OperationName = keyof Contracts;

/** The operations that the service carries out; it answers 406 to the others. */
export type SupportedName = {
  [Name in OperationName]: Contracts[Name]["supported"] extends true ? Name : never;
}[OperationName];
