import { changed, move } from "../../domain/job.ts";
import { alterAttempt, sampled } from "../../domain/job-attempt.ts";
import { updateAttempt } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";

/** Ends an attempt, and its job if the request contains the final status. */
export const finishJobAttempt: Handler<"finishJobAttempt"> = async (request, { store }) =>
  alterAttempt(store, request, async (session, job) => {
    const { status = job.status, reason, progress = job.progress, result = {}, log_tail: logTail } = request;
    const finished = changed(job, { status: move(job.status, status), reason, progress, result });
    const endedAtMillis = finished.updatedAtMillis;
    const samples = await sampled(session, job, request.progress);
    await updateAttempt(session, job.id, job.attempt, { endedAtMillis, reason, logTail, samples });
    return finished;
  });
