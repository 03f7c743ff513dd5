import { CatalogError, contracts } from "@tiltyard/protocol";
import { requireBranch } from "../commits/read.ts";
import { checkBackfill } from "../dataset/columns.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { openTableJob } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableBackfillColumns;

/**
 * Opens a job only: it runs on a Ray cluster, and whoever runs it moves it on. Whoever starts it sees its parameters
 * and not the table, so that they have the manifest of the function, too.
 */
export const alterTableBackfillColumns: Handler<typeof contract> = async (request, catalog, caller) => {
  const { store, datasets } = catalog;
  const branch = branchOf(request);
  const table = await requireTable(store.read, request.id);
  await requireBranch(catalog, table, branch);
  if (branch !== mainBranch) throw new CatalogError("InvalidInput", "branch: jobs fill columns of main alone");
  const stored = await checkBackfill(datasets, request);
  const completed = { ...request, manifest: request.manifest ?? stored.manifest };
  return { job_id: await openTableJob(store, { contract, request: completed, caller }) };
};
