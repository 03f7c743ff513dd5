import { prepareRefresh } from "../domain/materialized-view.ts";
import { openOnce } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import { resolveNames } from "../rows/definitions.ts";
import type { Handler } from "./handler.ts";

/** Opens a job, like `AlterTableBackfillColumns`. */
export const refreshMaterializedView: Handler<"refreshMaterializedView"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const view = await requireTable(store.read, request.id);
  const named = await resolveNames(catalog, { ...request, caller });
  const job = prepareRefresh(view, { ...request, ...named }, caller);
  return { job_id: await openOnce(store, job) };
};
