import {
  CatalogError,
  contracts,
  formatIdentifier,
  type Identifier,
  viewDefinitionPrefix as prefix,
} from "@tiltyard/protocol";
import { z } from "zod";
import { authorize, isAllowed } from "../auth/authorize.ts";
import { grantsOf } from "../auth/job-key.ts";
import type { Origin } from "../domain/transaction.ts";
import { type NewJob, prepareJob, requireNameable } from "../jobs/job.ts";
import { parametersOf } from "../jobs/parameters.ts";
import type { Session } from "../store/store.ts";
import type { ViewRecord } from "../store/views.ts";

/** The fields that the catalog reads of a stored function. */
const StoredUdtf = z.looseObject({ manifest: z.string().optional() });

/** The parameters that all refreshes share. Additional ones are allowed. */
interface RefreshRequest {
  readonly id: Identifier;
  readonly output_limit?: number | undefined;
  readonly manifest?: string | undefined;
}

/** A view, or its definition before its creation; undefined for a table without one. */
type Definition = Pick<ViewRecord, "definition"> | undefined;

/**
 * Prepares the job of a refresh. Its parameters contain everything that the compute side needs: the definition of the
 * view and the parameters, either of the request or as stored with the view.
 *
 * @throws CatalogError InvalidInput for a parameter that the kind of the view does not have; also like `prepareJob` and
 * `requireNameable`.
 */
export function prepareRefresh(view: Definition, request: RefreshRequest, caller: Origin): NewJob {
  requireNameable(request.id);
  const { definition = {} } = view ?? {};
  const kind = definition[`${prefix}kind`];
  if (request.output_limit !== undefined && kind !== undefined && kind !== "chunker")
    throw new CatalogError(
      "InvalidInput",
      `output_limit: is only for views of the kind chunker; this one is a ${kind}`,
    );
  const spec = definition[`${prefix}udtf_spec`];
  const manifest = request.manifest ?? (spec && StoredUdtf.parse(JSON.parse(spec)).manifest);
  const { operationId: operation } = contracts.refreshMaterializedView;
  const parameters = { ...definition, ...parametersOf(operation, { ...request, manifest }) };
  return prepareJob({ operation, caller, table: request.id, parameters });
}

/**
 * Requires that the caller and the definer of a view may read its source, because the key of a refresh has the rights
 * that both have.
 *
 * @throws CatalogError PermissionDenied for the caller, InvalidTableState for the definer.
 */
export async function requireReadableSource(session: Session, { source, definer }: ViewRecord, { principal }: Origin) {
  if (source === undefined) return;
  const access = { role: "reader", object: source } as const;
  authorize(principal, [access]);
  if (isAllowed({ grants: await grantsOf(session, definer, [source]) }, access)) return;
  throw new CatalogError(
    "InvalidTableState",
    `the definer of the view, ${definer}, may no longer read ${formatIdentifier(source)}: create the view again`,
  );
}
