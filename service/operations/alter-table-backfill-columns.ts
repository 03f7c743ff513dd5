import { contracts } from "@tiltyard/protocol";
import { requireBranch } from "../commits/read.ts";
import { automationOf } from "../domain/automation.ts";
import { branchOf, requireMain } from "../domain/branch.ts";
import { openTableJob } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import { checkBackfill } from "../rows/columns.ts";
import { resolveNames } from "../rows/definitions.ts";
import { noteTask } from "../store/tasks.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableBackfillColumns;

/**
 * Opens a job, which runs on a Ray cluster and whose status its runner changes. The runner reads only the parameters
 * and not the table, so they also contain the manifest of the function.
 */
export const alterTableBackfillColumns: Handler<"alterTableBackfillColumns"> = async (request, catalog, caller) => {
  const { store, rows } = catalog;
  const table = await requireTable(store.read, request.id);
  await requireBranch(catalog, table, branchOf(request));
  requireMain(request);
  const stored = await checkBackfill(rows, { ...request, caller });
  const named = await resolveNames(catalog, { ...request, caller });
  const completed = { ...request, manifest: stored.manifest, ...named };
  const job_id = await openTableJob(store, { contract, request: completed, caller });
  // The catalog first learns about externally added columns here.
  if (stored.isAutomatic) await store.write((session) => noteTask(session, automationOf(table.id)));
  return { job_id };
};
