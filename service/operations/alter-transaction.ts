import { applyActions, writeJob } from "../domain/job.ts";
import { requireJob } from "../domain/require.ts";
import { toAnswer } from "../domain/transaction.ts";
import type { Handler } from "./handler.ts";

/** Changes the status and the properties of a job. Audit records cannot be altered. */
export const alterTransaction: Handler<"alterTransaction"> = async (request, { store }) => {
  const job = await store.write(async (session) => {
    const present = await requireJob(session, request.id);
    const altered = applyActions(present, request.actions);
    if (altered !== present) await writeJob(session, altered);
    return altered;
  });
  return toAnswer(job);
};
