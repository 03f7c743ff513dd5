import type { Identifier } from "@tiltyard/protocol";
import { isWritten } from "../commits/read.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { findTable, type TableRecord } from "../store/tables.ts";
import { exclusively } from "../tasks/exclusively.ts";
import type { Catalog } from "./handler.ts";

interface BranchRequest {
  readonly id: Identifier;
  readonly branch?: string | undefined;
}

/** Reports whether a write creates the first version of a table. */
export async function isUnwritten(catalog: Catalog, table: TableRecord, request: BranchRequest): Promise<boolean> {
  return branchOf(request) === mainBranch && !(await isWritten(catalog, table));
}

/**
 * Serializes writes that create the table or its first version across all replicas. A stream of rows cannot be
 * repeated, so the library must not lose the race for that version. The next write finds it.
 *
 * @throws CatalogError ServiceUnavailable if other writes last too long.
 */
export async function inTurn<Result>(
  catalog: Catalog,
  request: BranchRequest,
  write: () => Promise<Result>,
): Promise<Result> {
  const table = await findTable(catalog.store.read, request.id);
  if (table !== undefined && !(await isUnwritten(catalog, table, request))) return write();
  return exclusively(catalog.store, `first version of ${JSON.stringify(request.id)}`, write);
}
