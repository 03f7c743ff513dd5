import type { contracts } from "@tiltyard/protocol";
import { prepareRefresh } from "../domain/materialized-view.ts";
import { openOnce } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

/** Opens a job, like `AlterTableBackfillColumns`. */
export const refreshMaterializedView: Handler<typeof contracts.refreshMaterializedView> = async (
  request,
  { store },
  caller,
) => {
  const job = prepareRefresh(await requireTable(store.read, request.id), request, caller);
  return { job_id: await openOnce(store, job) };
};
