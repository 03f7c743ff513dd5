import { changed } from "../../domain/job.ts";
import { alterAttempt, sampled } from "../../domain/job-attempt.ts";
import { updateAttempt } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";

/** Records the state of an attempt. After its start, only its process proves that it is alive. */
export const heartbeatJobAttempt: Handler<"heartbeatJobAttempt"> = async (request, { store }) =>
  alterAttempt(store, request, async (session, job) => {
    const { claim, progress, log_tail: logTail, reason } = request;
    const beaten = changed(job, {
      ...(claim === job.claim && { heartbeatAtMillis: Date.now() }),
      ...(progress !== undefined && { progress }),
      ...(reason !== undefined && { reason: reason === "" ? undefined : reason }),
    });
    const samples = await sampled(session, job, progress);
    if (logTail !== undefined || samples !== undefined)
      await updateAttempt(session, job.id, job.attempt, { logTail, samples });
    return beaten;
  });
