import { CatalogError, type Identifier, isOpen, type Job } from "@tiltyard/protocol";
import { listSamples, type ProgressSample } from "../store/job-attempts.ts";
import type { JobRecord } from "../store/jobs.ts";
import type { Session, Store } from "../store/store.ts";
import { writeJob } from "./job.ts";
import { toJob } from "./job-summary.ts";
import { failWithoutTable } from "./job-table.ts";
import { requireJob } from "./require.ts";

/** A request about the latest attempt at a job. The claim is the random text of its process, which no other one knows. */
interface AttemptRequest {
  readonly id: Identifier;
  readonly delimiter: string;
  readonly attempt: number;
  readonly claim?: string | undefined;
}

/**
 * Changes a job for its latest attempt. A job that has ended stays unchanged, and its status informs the attempt. A job
 * without its table fails.
 *
 * @throws CatalogError ConcurrentModification if another attempt is the latest one, or if another process runs it.
 */
export async function alterAttempt(
  store: Store,
  request: AttemptRequest,
  change: (session: Session, job: JobRecord) => Promise<JobRecord>,
): Promise<{ readonly job: Job }> {
  const { id, delimiter, attempt, claim } = request;
  const job = await store.write(async (session) => {
    const latest = await requireJob(session, id);
    if (latest.attempt !== attempt)
      throw new CatalogError(
        "ConcurrentModification",
        `attempt ${attempt} is not the latest one, which is ${latest.attempt}`,
      );
    if (claim !== undefined && latest.claim !== undefined && latest.claim !== claim)
      throw new CatalogError("ConcurrentModification", `another process runs attempt ${attempt}`);
    if (!isOpen(latest)) return latest;
    const altered = (await failWithoutTable(session, latest)) ?? (await change(session, latest));
    await writeJob(session, altered);
    return altered;
  });
  return { job: toJob(job, delimiter) };
}

const samplesMax = 120;

/**
 * Adds the present progress of an attempt to its series. A full series first loses every second sample, so its older
 * part is coarser.
 *
 * @returns The series; undefined if the progress has no number of rows.
 */
export async function sampled(
  session: Session,
  { id, attempt }: Pick<JobRecord, "id" | "attempt">,
  progress: JobRecord["progress"] | undefined,
): Promise<readonly ProgressSample[] | undefined> {
  const { rows_committed: rows } = progress ?? {};
  if (rows === undefined) return undefined;
  const series = await listSamples(session, id, attempt);
  const kept = series.length < samplesMax ? series : series.filter((_, index) => index % 2 === 0);
  return [...kept, [Date.now(), rows]];
}
