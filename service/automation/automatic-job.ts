import { isDeepStrictEqual } from "node:util";
import {
  CatalogError,
  contracts,
  defaultDelimiter,
  type ErrorKind,
  type Identifier,
  managementContracts,
  type Role,
  sourceOfRefresh,
} from "@tiltyard/protocol";
import { authorize } from "../auth/authorize.ts";
import { grantsOfCatalog } from "../auth/job-key.ts";
import { type NewJob, prepareJob, requireNameable } from "../domain/job.ts";
import { prepareRefresh } from "../domain/materialized-view.ts";
import { parametersOf } from "../domain/parameters.ts";
import type { Policy } from "../domain/policy.ts";
import type { Caller } from "../domain/transaction.ts";
import { checkBackfill, indexedColumn } from "../rows/columns.ts";
import type { Rows } from "../rows/rows.ts";
import type { Automation } from "../store/automations.ts";
import { listGrantsOf } from "../store/grants.ts";
import type { Store } from "../store/store.ts";
import { findTableById, type TableRecord } from "../store/tables.ts";

interface Parts {
  readonly store: Store;
  readonly rows: Rows;
}

/**
 * Prepares the job of an automation.
 *
 * @throws CatalogError with the reason why no job can be opened: `obstacles` until the table, the policy or the roles
 * change.
 */
export async function automaticJob(
  { store, rows }: Parts,
  { identifier }: TableRecord,
  { kind, target, principal }: Automation,
  { auto_compact, auto_build_index = [], auto_clean_up }: Policy,
): Promise<NewJob> {
  requireNameable(identifier);
  const grants = grantsOfCatalog(principal, [identifier]) ?? (await listGrantsOf(store.read, principal));
  const opener = { name: principal, grants };
  const caller: Caller = { principal: opener, requestId: "" };
  const requireRole = (role: Role, object: Identifier) => authorize(opener, [{ role, object }]);
  const jobOf = (contract: { readonly operationId: string }, request: object) =>
    prepareJob({ contract, caller, table: identifier, parameters: parametersOf({ ...request }) });
  switch (kind) {
    case "backfill": {
      requireRole("writer", identifier);
      const { manifest } = await checkBackfill(rows, { id: identifier, column: target, caller });
      return jobOf(contracts.alterTableBackfillColumns, { column: target, manifest });
    }
    case "refresh": {
      const view = await findTableById(store.read, Number(target));
      if (view === undefined) throw new CatalogError("InvalidInput", "the view no longer exists");
      // The view contains rows of this table, so its principal must still be a reader of the table.
      requireRole("reader", identifier);
      requireRole("writer", view.identifier);
      const refresh = prepareRefresh(view, { id: view.identifier, delimiter: defaultDelimiter }, caller);
      // Every writer of the view can replace its definition, but must not choose what the principal reads.
      if (!isDeepStrictEqual(sourceOfRefresh(refresh.opened.parameters), identifier))
        throw new CatalogError("InvalidInput", "the view has another source");
      return refresh;
    }
    case "compact": {
      requireRole("writer", identifier);
      const { small_fragments: _, ...request } = required(auto_compact);
      return jobOf(managementContracts.compactTable, request);
    }
    case "build_index": {
      requireRole("writer", identifier);
      const policy = required(auto_build_index.find(({ column }) => column === target));
      const { new_fragments: _, ...request } = policy;
      const column = await indexedColumn(rows, { ...policy, id: identifier, caller });
      return jobOf(managementContracts.buildTableIndex, { ...request, column });
    }
    case "clean_up": {
      requireRole("writer", identifier);
      const { versions: _, ...request } = required(auto_clean_up);
      return jobOf(managementContracts.cleanUpTable, request);
    }
  }
}

const obstacles: readonly ErrorKind[] = ["TableColumnNotFound", "InvalidInput", "PermissionDenied"];

/** Reports whether an error is a reason why no job can be opened for now. */
export function isObstacle(error: unknown): error is CatalogError {
  return error instanceof CatalogError && obstacles.includes(error.kind);
}

function required<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new CatalogError("InvalidInput", "the policy no longer has this part");
  return part;
}
