import type { Contracts, OperationName } from "@tiltyard/protocol";
import { alterTableAddColumns } from "./alter-table-add-columns.ts";
import { alterTableAlterColumns } from "./alter-table-alter-columns.ts";
import { alterTableBackfillColumns } from "./alter-table-backfill-columns.ts";
import { alterTableDropColumns } from "./alter-table-drop-columns.ts";
import { alterTransaction } from "./alter-transaction.ts";
import { analyzeTableQueryPlan } from "./analyze-table-query-plan.ts";
import { batchCommitTables } from "./batch-commit-tables.ts";
import { batchCreateTableVersions } from "./batch-create-table-versions.ts";
import { batchDeleteTableVersions } from "./batch-delete-table-versions.ts";
import { countTableRows } from "./count-table-rows.ts";
import { createMaterializedView } from "./create-materialized-view.ts";
import { createNamespace } from "./create-namespace.ts";
import { createTable } from "./create-table.ts";
import { createTableBranch } from "./create-table-branch.ts";
import { createTableIndex } from "./create-table-index.ts";
import { createTableScalarIndex } from "./create-table-scalar-index.ts";
import { createTableTag } from "./create-table-tag.ts";
import { createTableVersion } from "./create-table-version.ts";
import { declareTable } from "./declare-table.ts";
import { deleteFromTable } from "./delete-from-table.ts";
import { deleteTableBranch } from "./delete-table-branch.ts";
import { deleteTableTag } from "./delete-table-tag.ts";
import { deregisterTable } from "./deregister-table.ts";
import { describeNamespace } from "./describe-namespace.ts";
import { describeTable } from "./describe-table.ts";
import { describeTableIndexStats } from "./describe-table-index-stats.ts";
import { describeTableVersion } from "./describe-table-version.ts";
import { describeTransaction } from "./describe-transaction.ts";
import { dropNamespace } from "./drop-namespace.ts";
import { dropTable } from "./drop-table.ts";
import { dropTableIndex } from "./drop-table-index.ts";
import { explainTableQueryPlan } from "./explain-table-query-plan.ts";
import { getTableStats } from "./get-table-stats.ts";
import { getTableTagVersion } from "./get-table-tag-version.ts";
import type { Handler } from "./handler.ts";
import { insertIntoTable } from "./insert-into-table.ts";
import { listAllTables } from "./list-all-tables.ts";
import { listNamespaces } from "./list-namespaces.ts";
import { listTableBranches } from "./list-table-branches.ts";
import { listTableIndices } from "./list-table-indices.ts";
import { listTableTags } from "./list-table-tags.ts";
import { listTableVersions } from "./list-table-versions.ts";
import { listTables } from "./list-tables.ts";
import { mergeInsertIntoTable } from "./merge-insert-into-table.ts";
import { namespaceExists } from "./namespace-exists.ts";
import { queryTable } from "./query-table.ts";
import { refreshMaterializedView } from "./refresh-materialized-view.ts";
import { registerTable } from "./register-table.ts";
import { renameTable } from "./rename-table.ts";
import { restoreTable } from "./restore-table.ts";
import { tableExists } from "./table-exists.ts";
import { updateFieldMetadata } from "./update-field-metadata.ts";
import { updateTable } from "./update-table.ts";
import { updateTableSchemaMetadata } from "./update-table-schema-metadata.ts";
import { updateTableTag } from "./update-table-tag.ts";

/** The handlers of all operations of the protocol. A missing one does not compile. */
export const handlers: { readonly [Name in OperationName]: Handler<Contracts[Name]> } = {
  alterTableAddColumns,
  alterTableAlterColumns,
  alterTableBackfillColumns,
  alterTableDropColumns,
  alterTransaction,
  analyzeTableQueryPlan,
  batchCommitTables,
  batchCreateTableVersions,
  batchDeleteTableVersions,
  countTableRows,
  createMaterializedView,
  createNamespace,
  createTable,
  createTableBranch,
  createTableIndex,
  createTableScalarIndex,
  createTableTag,
  createTableVersion,
  declareTable,
  deleteFromTable,
  deleteTableBranch,
  deleteTableTag,
  deregisterTable,
  describeNamespace,
  describeTable,
  describeTableIndexStats,
  describeTableVersion,
  describeTransaction,
  dropNamespace,
  dropTable,
  dropTableIndex,
  explainTableQueryPlan,
  getTableStats,
  getTableTagVersion,
  insertIntoTable,
  listAllTables,
  listNamespaces,
  listTableBranches,
  listTableIndices,
  listTableTags,
  listTableVersions,
  listTables,
  mergeInsertIntoTable,
  namespaceExists,
  queryTable,
  refreshMaterializedView,
  registerTable,
  renameTable,
  restoreTable,
  tableExists,
  updateFieldMetadata,
  updateTable,
  updateTableSchemaMetadata,
  updateTableTag,
};
