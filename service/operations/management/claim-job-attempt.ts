import { CatalogError, isOpen } from "@tiltyard/protocol";
import { changed, writeJob } from "../../domain/job.ts";
import { toJob } from "../../domain/job-summary.ts";
import { failWithoutRights, failWithoutTable } from "../../domain/job-table.ts";
import { requireJob } from "../../domain/require.ts";
import { insertAttempt, updateAttempt } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";

/**
 * Begins another attempt and ends the latest one, whose later requests are rejected. A job without its table
 * or without the rights of its opener fails instead.
 */
export const claimJobAttempt: Handler<"claimJobAttempt"> = async (request, { store }) => {
  const { id, delimiter, after, platform } = request;
  const job = await store.write(async (session) => {
    const latest = await requireJob(session, id);
    if (!isOpen(latest) || latest.attempt !== after)
      throw new CatalogError(
        "ConcurrentModification",
        `the job is ${latest.status}, and its latest attempt is ${latest.attempt}`,
      );
    const failed = (await failWithoutTable(session, latest)) ?? (await failWithoutRights(session, latest));
    if (failed !== undefined) {
      await writeJob(session, failed);
      return failed;
    }
    const claimedAtMillis = Date.now();
    const number = after + 1;
    await updateAttempt(session, latest.id, after, { endedAtMillis: claimedAtMillis, reason: latest.reason });
    await insertAttempt(session, latest.id, { number, claimedAtMillis, platform });
    const of = { claim: undefined, startedAtMillis: undefined, heartbeatAtMillis: claimedAtMillis, reason: undefined };
    const claimed = changed(latest, { ...of, attempt: number, platform });
    await writeJob(session, claimed);
    return claimed;
  });
  return { job: toJob(job, delimiter) };
};
