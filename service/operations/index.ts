import type { Contracts, SupportedName } from "@tiltyard/protocol";
import { alterTableBackfillColumns } from "./alter-table-backfill-columns.ts";
import { alterTransaction } from "./alter-transaction.ts";
import { batchCommitTables } from "./batch-commit-tables.ts";
import { batchCreateTableVersions } from "./batch-create-table-versions.ts";
import { batchDeleteTableVersions } from "./batch-delete-table-versions.ts";
import { createNamespace } from "./create-namespace.ts";
import { createTableVersion } from "./create-table-version.ts";
import { declareTable } from "./declare-table.ts";
import { deregisterTable } from "./deregister-table.ts";
import { describeNamespace } from "./describe-namespace.ts";
import { describeTable } from "./describe-table.ts";
import { describeTableVersion } from "./describe-table-version.ts";
import { describeTransaction } from "./describe-transaction.ts";
import { dropNamespace } from "./drop-namespace.ts";
import { dropTable } from "./drop-table.ts";
import type { Handler } from "./handler.ts";
import { listAllTables } from "./list-all-tables.ts";
import { listNamespaces } from "./list-namespaces.ts";
import { listTableVersions } from "./list-table-versions.ts";
import { listTables } from "./list-tables.ts";
import { namespaceExists } from "./namespace-exists.ts";
import { registerTable } from "./register-table.ts";
import { renameTable } from "./rename-table.ts";
import { tableExists } from "./table-exists.ts";

/** The handler of every operation that the protocol declares as supported: one that is missing does not compile. */
export const handlers: { readonly [Name in SupportedName]: Handler<Contracts[Name]> } = {
  alterTableBackfillColumns,
  alterTransaction,
  batchCommitTables,
  batchCreateTableVersions,
  batchDeleteTableVersions,
  createNamespace,
  createTableVersion,
  declareTable,
  deregisterTable,
  describeNamespace,
  describeTable,
  describeTableVersion,
  describeTransaction,
  dropNamespace,
  dropTable,
  listAllTables,
  listNamespaces,
  listTableVersions,
  listTables,
  namespaceExists,
  registerTable,
  renameTable,
  tableExists,
};
