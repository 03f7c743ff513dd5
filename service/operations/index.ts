import type { Contracts, SupportedName } from "@tiltyard/protocol";
import { alterTableBackfillColumns } from "./alter-table-backfill-columns.ts";
import { alterTransaction } from "./alter-transaction.ts";
import { batchCommitTables } from "./batch-commit-tables.ts";
import { batchCreateTableVersions } from "./batch-create-table-versions.ts";
import { batchDeleteTableVersions } from "./batch-delete-table-versions.ts";
import { createNamespace } from "./create-namespace.ts";
import { createTableTag } from "./create-table-tag.ts";
import { createTableVersion } from "./create-table-version.ts";
import { declareTable } from "./declare-table.ts";
import { deleteTableBranch } from "./delete-table-branch.ts";
import { deleteTableTag } from "./delete-table-tag.ts";
import { deregisterTable } from "./deregister-table.ts";
import { describeNamespace } from "./describe-namespace.ts";
import { describeTable } from "./describe-table.ts";
import { describeTableVersion } from "./describe-table-version.ts";
import { describeTransaction } from "./describe-transaction.ts";
import { dropNamespace } from "./drop-namespace.ts";
import { dropTable } from "./drop-table.ts";
import { getTableTagVersion } from "./get-table-tag-version.ts";
import type { Handler } from "./handler.ts";
import { listAllTables } from "./list-all-tables.ts";
import { listNamespaces } from "./list-namespaces.ts";
import { listTableBranches } from "./list-table-branches.ts";
import { listTableTags } from "./list-table-tags.ts";
import { listTableVersions } from "./list-table-versions.ts";
import { listTables } from "./list-tables.ts";
import { namespaceExists } from "./namespace-exists.ts";
import { registerTable } from "./register-table.ts";
import { renameTable } from "./rename-table.ts";
import { tableExists } from "./table-exists.ts";
import { updateTableTag } from "./update-table-tag.ts";

/** The handler of every operation that the protocol declares as supported: one that is missing does not compile. */
export const handlers: { readonly [Name in SupportedName]: Handler<Contracts[Name]> } = {
  alterTableBackfillColumns,
  alterTransaction,
  batchCommitTables,
  batchCreateTableVersions,
  batchDeleteTableVersions,
  createNamespace,
  createTableTag,
  createTableVersion,
  declareTable,
  deleteTableBranch,
  deleteTableTag,
  deregisterTable,
  describeNamespace,
  describeTable,
  describeTableVersion,
  describeTransaction,
  dropNamespace,
  dropTable,
  getTableTagVersion,
  listAllTables,
  listNamespaces,
  listTableBranches,
  listTableTags,
  listTableVersions,
  listTables,
  namespaceExists,
  registerTable,
  renameTable,
  tableExists,
  updateTableTag,
};
