import { type AnyContract, contracts, managementContracts, remoteContracts } from "@tiltyard/protocol";
import { batchCommitTables } from "./operations/batch-commit-tables.ts";
import type { AuthorizedCaller, Catalog, Handler, Operations } from "./operations/handler.ts";
import * as job from "./operations/management/job.ts";
import * as jobAttempt from "./operations/management/job-attempt.ts";
import * as maintenance from "./operations/management/maintenance.ts";
import * as policy from "./operations/management/policy.ts";
import * as principal from "./operations/management/principal.ts";
import * as search from "./operations/management/search.ts";
import * as managedTable from "./operations/management/table.ts";
import * as listedTransaction from "./operations/management/transaction.ts";
import * as materializedView from "./operations/materialized-view.ts";
import * as namespace from "./operations/namespace.ts";
import * as table from "./operations/table.ts";
import * as tableBranch from "./operations/table-branch.ts";
import * as tableColumns from "./operations/table-columns.ts";
import * as tableData from "./operations/table-data.ts";
import * as tableIndex from "./operations/table-index.ts";
import * as tableTag from "./operations/table-tag.ts";
import * as tableVersion from "./operations/table-version.ts";
import * as transaction from "./operations/transaction.ts";
import { remoteHandlers } from "./remote/handlers.ts";
import { inDialect } from "./remote/in-dialect.ts";

/** A contract and the handler that implements it. */
export interface Operation {
  readonly contract: AnyContract;
  /** The type of the handlers binds each of them to its contract. */
  readonly handler: (request: never, catalog: Catalog, caller: AuthorizedCaller) => Promise<unknown>;
}

/** The handlers by the names of their contracts. A missing one does not compile. */
const handlers: { readonly [Name in keyof Operations]: Handler<Name> } = {
  ...job,
  ...jobAttempt,
  ...listedTransaction,
  ...maintenance,
  ...managedTable,
  ...materializedView,
  ...namespace,
  ...policy,
  ...principal,
  ...search,
  ...table,
  ...tableBranch,
  ...tableColumns,
  ...tableData,
  ...tableIndex,
  ...tableTag,
  ...tableVersion,
  ...transaction,
  batchCommitTables,
  ...remoteHandlers,
};

/** All operations: those of the protocol, of management, and of LanceDB's remote client. */
export const operations: readonly Operation[] = [
  ...operationsOf({ ...contracts, ...managementContracts }),
  ...operationsOf(remoteContracts).map(({ contract, handler }) => ({ contract, handler: inDialect(handler) })),
];

function operationsOf(contractsByName: Readonly<Record<string, AnyContract>>): readonly Operation[] {
  return Object.entries(contractsByName).map(([name, contract]) => ({
    contract,
    handler: handlers[name as keyof Operations],
  }));
}
