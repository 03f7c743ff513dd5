import { CatalogError } from "@tiltyard/protocol";
import { changed } from "../../domain/job.ts";
import { alterAttempt } from "../../domain/job-attempt.ts";
import { deleteAttempt } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";

/** Removes an attempt that has not started, so that it does not count. */
export const releaseJobAttempt: Handler<"releaseJobAttempt"> = async (request, { store }) =>
  alterAttempt(store, request, async (session, job) => {
    if (job.claim !== undefined)
      throw new CatalogError("ConcurrentModification", `attempt ${job.attempt} has started already`);
    await deleteAttempt(session, job.id, job.attempt);
    const released = changed(job, { attempt: job.attempt - 1, heartbeatAtMillis: Date.now(), platform: {} });
    return released;
  });
