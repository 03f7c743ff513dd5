import type { contracts } from "@tiltyard/protocol";
import { prepareRefresh } from "../domain/materialized-view.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

/** Opens a job only, as `AlterTableBackfillColumns` does. */
export const refreshMaterializedView: Handler<typeof contracts.refreshMaterializedView> = async (
  request,
  { store },
  caller,
) => {
  const job = await store.write(async (session) => {
    const refresh = prepareRefresh(await requireTable(session, request.id), request, caller);
    await refresh.open(session);
    return refresh;
  });
  return { job_id: job.name };
};
