import { changed, move } from "../../domain/job.ts";
import { alterAttempt } from "../../domain/job-attempt.ts";
import { updateAttempt } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";

/** Starts an attempt for one process, which may repeat the request. */
export const startJobAttempt: Handler<"startJobAttempt"> = async (request, { store }) =>
  alterAttempt(store, request, async (session, job) => {
    const now = Date.now();
    const startedAtMillis = job.startedAtMillis ?? now;
    const started = changed(job, {
      status: move(job.status, "Running"),
      claim: request.claim,
      startedAtMillis,
      heartbeatAtMillis: now,
    });
    await updateAttempt(session, job.id, job.attempt, { startedAtMillis });
    return started;
  });
