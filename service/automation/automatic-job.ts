import {
  CatalogError,
  contracts,
  defaultDelimiter,
  type Identifier,
  managementContracts,
  type Role,
} from "@tiltyard/protocol";
import { isAllowed } from "../auth/authenticator.ts";
import { isNameable, type NewJob, prepareJob } from "../domain/job.ts";
import { prepareRefresh } from "../domain/materialized-view.ts";
import { parametersOf } from "../domain/parameters.ts";
import type { Policy } from "../domain/policy.ts";
import type { Caller } from "../domain/transaction.ts";
import { checkBackfill, requireColumn } from "../rows/columns.ts";
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
 * Prepares the job of an automation; undefined if its target no longer exists or no job can name the table. @throws
 * CatalogError
 */
export async function automaticJob(
  { store, rows }: Parts,
  { identifier }: TableRecord,
  { kind, target, principal }: Automation,
  { auto_compact, auto_build_index, auto_clean_up }: Policy,
): Promise<NewJob | undefined> {
  if (!isNameable(identifier)) return undefined;
  const grants = await listGrantsOf(store.read, principal);
  const caller: Caller = { principal: { name: principal, grants }, requestId: "" };
  const may = (role: Role, object: Identifier) => isAllowed({ grants }, { role, object });
  const ofTable = (contract: { readonly operationId: string }, request: object | undefined) =>
    request && prepareJob({ contract, caller, table: identifier, parameters: parametersOf({ ...request }) });
  switch (kind) {
    case "backfill": {
      if (!may("writer", identifier)) return undefined;
      const stored = await unlessGone(() => checkBackfill(rows, { id: identifier, column: target, caller }));
      return ofTable(contracts.alterTableBackfillColumns, stored && { column: target, manifest: stored.manifest });
    }
    case "refresh": {
      const view = await findTableById(store.read, Number(target));
      // The view contains rows of this table, so its principal must still be a reader of the table.
      if (view === undefined || !may("reader", identifier) || !may("writer", view.identifier)) return undefined;
      const request = { id: view.identifier, delimiter: defaultDelimiter };
      return unlessGone(async () => prepareRefresh(view, request, caller));
    }
    case "compact": {
      const { small_fragments: _, ...request } = auto_compact ?? {};
      return ofTable(managementContracts.compactTable, auto_compact && request);
    }
    case "build_index": {
      const found = auto_build_index?.find(({ column }) => column === target);
      const { new_fragments: _, ...request } = found ?? {};
      const present = await unlessGone(async () => {
        await requireColumn(rows, { id: identifier, column: target, caller });
        return request;
      });
      return ofTable(managementContracts.buildTableIndex, found && present);
    }
    case "clean_up": {
      const { versions: _, ...request } = auto_clean_up ?? {};
      return ofTable(managementContracts.cleanUpTable, auto_clean_up && request);
    }
  }
}

async function unlessGone<Found>(find: () => Promise<Found>): Promise<Found | undefined> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof CatalogError && ["TableColumnNotFound", "InvalidInput"].includes(error.kind)) return undefined;
    throw error;
  }
}
