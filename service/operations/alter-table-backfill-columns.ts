import { CatalogError, contracts } from "@tiltyard/protocol";
import { requireBranch } from "../commits/read.ts";
import { checkBackfill } from "../dataset/columns.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { openTableJob } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableBackfillColumns;

/** Opens a job only: it runs on a Ray cluster, and whoever runs it moves it on. */
export const alterTableBackfillColumns: Handler<typeof contract> = async (request, catalog, caller) => {
  const { store, datasets } = catalog;
  const branch = branchOf(request);
  const table = await requireTable(store.read, request.id);
  await requireBranch(catalog, table, branch);
  if (branch !== mainBranch) throw new CatalogError("InvalidInput", "branch: jobs fill columns of main alone");
  await checkBackfill(datasets, request);
  return { job_id: await openTableJob(store, { contract, request, caller }) };
};
