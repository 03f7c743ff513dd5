import { isDeepStrictEqual } from "node:util";
import { ChildEnded } from "@tiltyard/lance-worker";
import {
  CatalogError,
  contracts,
  hasKind,
  type Identifier,
  type JobParameters,
  managementContracts,
  type Role,
} from "@tiltyard/protocol";
import { authorize } from "../auth/authorize.ts";
import { grantsOf } from "../auth/job-key.ts";
import type { CommitDeps } from "../commits/deps.ts";
import { viewOf } from "../commits/read.ts";
import { indexPolicyOf, type Policy } from "../domain/policy.ts";
import { originOf } from "../domain/transaction.ts";
import { requireRefreshable } from "../functions/refresh.ts";
import { checkBackfill, indexedColumn } from "../geneva/backfill.ts";
import { requireRunnerCluster } from "../geneva/definitions.ts";
import { type NewJob, prepareJob, requireNameable } from "../jobs/job.ts";
import { parametersOf } from "../jobs/parameters.ts";
import type { Rows } from "../rows/rows.ts";
import type { Automation } from "../store/automations.ts";
import { findTableById, type TableRecord } from "../store/tables.ts";
import { prepareRefresh } from "../views/refresh.ts";

export interface JobPreparationDeps extends CommitDeps {
  readonly rows: Rows;
  /** The Ray clusters in the runner's file. */
  readonly rayClusters: readonly string[];
}

/**
 * Prepares the job of an automation.
 *
 * @throws CatalogError with the reason why no job can be opened before the table, the policy or the roles change.
 */
export async function automaticJob(
  deps: JobPreparationDeps,
  table: TableRecord,
  { kind, target, principal }: Automation,
  policies: Policy,
): Promise<NewJob> {
  const { store, rows } = deps;
  const { identifier } = table;
  requireNameable(identifier);
  const opener = { name: principal, grants: await grantsOf(store.read, principal, [identifier]) };
  const caller = originOf(opener);
  const requireRole = (role: Role, object: Identifier) => authorize(opener, [{ role, object }]);
  const jobOf = ({ operationId: operation }: { readonly operationId: string }, request: JobParameters) => {
    requireRunnerCluster(deps.rayClusters, request.cluster);
    return prepareJob({ operation, caller, table: identifier, parameters: parametersOf(operation, request) });
  };
  // The view contains rows of this table, so its principal must still be a reader of the table.
  requireRole(kind === "refresh" ? "reader" : "writer", identifier);
  switch (kind) {
    case "backfill": {
      const request = { id: identifier, column: target };
      const { manifest, binding } = await checkBackfill(rows, { ...request, caller });
      const bound = binding === undefined ? {} : await requireRefreshable(deps, table, binding, request);
      return jobOf(contracts.alterTableBackfillColumns, { column: target, manifest, ...bound });
    }
    case "refresh": {
      const view = await findTableById(store.read, Number(target));
      if (view === undefined) throw new CatalogError("InvalidInput", "the view no longer exists");
      requireRole("writer", view.identifier);
      const definition = await viewOf(deps, view);
      // Other writers of the view can replace its definition, but must not choose what the principal reads.
      if (!isDeepStrictEqual(definition?.source, identifier))
        throw new CatalogError("InvalidInput", "the view has another source");
      return prepareRefresh(definition, { id: view.identifier }, caller);
    }
    case "compact": {
      const { small_fragments: _, schedule: __, ...request } = required(policies.auto_compact);
      return jobOf(managementContracts.compactTable, request);
    }
    case "build_index": {
      const policy = required(indexPolicyOf(policies, target));
      const { new_fragments: _, schedule: __, ...request } = policy;
      const column = await indexedColumn(rows, { ...policy, id: identifier, caller });
      return jobOf(managementContracts.buildTableIndex, { ...request, column });
    }
    case "clean_up": {
      const { versions: _, schedule: __, ...request } = required(policies.auto_clean_up);
      return jobOf(managementContracts.cleanUpTable, request);
    }
  }
}

/** Reports whether an error is a reason why no job can be opened for now. The end of the library's process is none. */
export function isObstacle(error: unknown): error is CatalogError {
  if (error instanceof Error && error.cause instanceof ChildEnded) return false;
  return hasKind(error, "TableColumnNotFound", "InvalidInput", "InvalidTableState", "PermissionDenied");
}

function required<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new CatalogError("InvalidInput", "the policy no longer has this part");
  return part;
}
