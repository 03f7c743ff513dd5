import { requireJob } from "../../domain/require.ts";
import { listAttempts } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";

export const listJobAttempts: Handler<"listJobAttempts"> = async ({ id }, { store }) => {
  const job = await requireJob(store.read, id);
  const attempts = await listAttempts(store.read, job.id);
  return {
    attempts: attempts.map(
      ({ number, claimedAtMillis, startedAtMillis, endedAtMillis, reason, platform, logTail, samples }) => ({
        number,
        claimed_at_millis: claimedAtMillis,
        ...(startedAtMillis !== undefined && { started_at_millis: startedAtMillis }),
        ...(endedAtMillis !== undefined && { ended_at_millis: endedAtMillis }),
        ...(reason !== undefined && { reason }),
        platform: { ...platform },
        lines: linesOf(logTail),
        samples: samples.map(([at_millis, rows_committed]) => ({ at_millis, rows_committed })),
      }),
    ),
  };
};

/** Returns the lines of the end of an output. */
export function linesOf(logTail: string): string[] {
  return logTail === "" ? [] : logTail.split("\n");
}
