import type { contracts } from "@tiltyard/protocol";
import { openRefresh } from "../domain/materialized-view.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

/** Opens the transaction only, as `AlterTableBackfillColumns` does. */
export const refreshMaterializedView: Handler<typeof contracts.refreshMaterializedView> = async (
  request,
  { store },
  caller,
) => {
  const transaction = await store.write(async (session) => {
    const opened = openRefresh(await requireTable(session, request.id), request, caller);
    await opened.record(session);
    return opened;
  });
  return { job_id: transaction.name };
};
