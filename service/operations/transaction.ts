import { applyActions, writeJob } from "../domain/job.ts";
import { requireJob, requireTransaction } from "../domain/require.ts";
import { toAnswer } from "../domain/transaction.ts";
import type { Handler } from "./handler.ts";

/** Describes a transaction of the protocol, which is an audit record or a job. */
export const describeTransaction: Handler<"describeTransaction"> = async (request, { store }) =>
  toAnswer(await requireTransaction(store.read, request.id));

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
