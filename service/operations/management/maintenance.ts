import { requireMain } from "../../domain/require.ts";
import { indexedColumn } from "../../geneva/backfill.ts";
import { resolveNames } from "../../geneva/definitions.ts";
import { openTableJob } from "../../jobs/open-job.ts";
import type { AuthorizedCaller, Catalog, Handler } from "../handler.ts";

export const compactTable: Handler<"compactTable"> = openJob;

export const buildTableIndex: Handler<"buildTableIndex"> = async (request, catalog, caller) => {
  requireMain(request);
  const column = await indexedColumn(catalog.rows, { ...request, caller });
  return openJob({ ...request, column }, catalog, caller);
};

export const cleanUpTable: Handler<"cleanUpTable"> = openJob;

type OpenRequest = Parameters<typeof requireMain>[0] &
  Omit<Parameters<typeof resolveNames>[1], "caller"> &
  Parameters<typeof openTableJob>[1]["request"];

/** Opens a job on `main` with the parameters of its request, in which Geneva's definitions replace their names. */
async function openJob<Request extends OpenRequest>(request: Request, catalog: Catalog, caller: AuthorizedCaller) {
  requireMain(request);
  const named = await resolveNames(catalog, { ...request, caller });
  return { job_id: await openTableJob(catalog, { request: { ...request, ...named }, caller }) };
}
