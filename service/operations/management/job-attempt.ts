import { CatalogError, type Identifier, isOpen } from "@tiltyard/protocol";
import { requireJob } from "../../domain/require.ts";
import {
  changed,
  failAfterTimeout,
  failWithoutObject,
  failWithoutRights,
  hasProgressed,
  move,
  toJob,
  toJobSummary,
  writeJob,
} from "../../jobs/job.ts";
import type { ProgressSample } from "../../store/column-types.ts";
import { deleteAttempt, findAttempt, insertAttempt, listAttempts, updateAttempt } from "../../store/job-attempts.ts";
import type { JobRecord } from "../../store/jobs.ts";
import type { Session, Store } from "../../store/store.ts";
import type { Handler } from "../handler.ts";

/**
 * Begins another attempt and ends the latest one, whose later requests are rejected. A job without its object
 * or without the rights of its opener, or after its timeout, fails instead.
 */
export const claimJobAttempt: Handler<"claimJobAttempt"> = async (request, { store }) => {
  const { id, delimiter, after, platform } = request;
  const job = await store.write(async (session) => {
    const latest = await requireJob(session, id);
    requireLatest(latest, after);
    if (latest.pausedAtMillis !== undefined)
      throw new CatalogError("ConcurrentModification", "the job is paused: it needs ResumeJob before another attempt");
    const failed =
      (await failWithoutObject(session, latest)) ??
      (await failWithoutRights(session, latest)) ??
      (await failAfterTimeout(session, latest));
    if (failed !== undefined) {
      await writeJob(session, failed);
      return failed;
    }
    const claimedAtMillis = session.time();
    const number = after + 1;
    await updateAttempt(session, latest.id, after, { endedAtMillis: claimedAtMillis, reason: latest.reason });
    await insertAttempt(session, { jobId: latest.id, number, claimedAtMillis, platform });
    const none = { claim: undefined, startedAtMillis: undefined, progressedAtMillis: undefined, reason: undefined };
    const claimed = changed(session, latest, {
      ...none,
      heartbeatAtMillis: claimedAtMillis,
      attempt: number,
      platform,
    });
    await writeJob(session, claimed);
    return claimed;
  });
  return { job: toJobSummary(job, delimiter) };
};

/** Starts an attempt for one process, which may repeat the request. */
export const startJobAttempt: Handler<"startJobAttempt"> = async (request, { store }) => {
  const altered = await alterAttempt(store, request, async (session, job) => {
    if (job.pausedAtMillis !== undefined) return job;
    await requireNotEnded(session, job);
    const { claim } = request;
    const heartbeatAtMillis = session.time();
    const { startedAtMillis = heartbeatAtMillis, progressedAtMillis = startedAtMillis } = job;
    await updateAttempt(session, job.id, job.attempt, { startedAtMillis });
    const times = { startedAtMillis, heartbeatAtMillis, progressedAtMillis };
    return changed(session, job, { status: move(job.status, "Running"), claim, ...times });
  });
  return { job: toJob(altered, request.delimiter) };
};

/** Records the state of an attempt. After its start, only its process proves that it is alive. */
export const heartbeatJobAttempt: Handler<"heartbeatJobAttempt"> = async (request, { store }) => {
  const altered = await alterAttempt(store, request, async (session, job) => {
    if (job.pausedAtMillis !== undefined) return job;
    await requireNotEnded(session, job);
    const { claim, progress, log_tail: logTail, reason } = request;
    const samples = await sampled(session, job, progress);
    if (logTail !== undefined || samples !== undefined)
      await updateAttempt(session, job.id, job.attempt, { logTail, samples });
    return changed(session, job, {
      ...(claim === job.claim && { heartbeatAtMillis: session.time() }),
      ...(progress !== undefined && { progress }),
      ...(progress !== undefined && hasProgressed(job.progress, progress) && { progressedAtMillis: session.time() }),
      ...(reason !== undefined && { reason: reason === "" ? undefined : reason }),
    });
  });
  return { job: toJobSummary(altered, request.delimiter) };
};

/** Removes an attempt that has not started, so that it does not count. */
export const releaseJobAttempt: Handler<"releaseJobAttempt"> = async (request, { store }) => {
  const altered = await alterAttempt(store, request, async (session, job) => {
    if (job.claim !== undefined || job.startedAtMillis !== undefined)
      throw new CatalogError("ConcurrentModification", `attempt ${job.attempt} has started already`);
    await requireNotEnded(session, job);
    await deleteAttempt(session, job.id, job.attempt);
    // The attempt before it has ended. It must not be released, too, so another one may follow at once.
    const before = await findAttempt(session, job.id, job.attempt - 1);
    const state =
      before === undefined
        ? { heartbeatAtMillis: session.time() }
        : { heartbeatAtMillis: undefined, startedAtMillis: before.startedAtMillis };
    return changed(session, job, { attempt: job.attempt - 1, platform: {}, ...state });
  });
  return { job: toJobSummary(altered, request.delimiter) };
};

/** Ends an attempt, and its job if the request contains the final status. */
export const finishJobAttempt: Handler<"finishJobAttempt"> = async (request, { store }) => {
  const altered = await alterAttempt(store, request, async (session, job) => {
    const { status = job.status, reason, progress = job.progress, result = {}, log_tail: logTail } = request;
    // A repeated request counts once, and a job without a heartbeat has no attempt that may still run.
    const isInterrupted = request.interrupted === true && job.heartbeatAtMillis !== undefined;
    const handedOver = isInterrupted && { interruptions: job.interruptions + 1, heartbeatAtMillis: undefined };
    const finished = changed(session, job, {
      status: move(job.status, status),
      reason,
      progress,
      result,
      ...handedOver,
    });
    const endedAtMillis = finished.updatedAtMillis;
    const samples = await sampled(session, job, request.progress);
    await updateAttempt(session, job.id, job.attempt, { endedAtMillis, reason, logTail, samples });
    return finished;
  });
  return { job: toJobSummary(altered, request.delimiter) };
};

export const listJobAttempts: Handler<"listJobAttempts"> = async ({ id }, { store }) => {
  const job = await requireJob(store.read, id);
  const attempts = await listAttempts(store.read, job.id);
  return {
    attempts: attempts.map(
      ({ number, claimedAtMillis, startedAtMillis, endedAtMillis, reason, platform, logTail, samples }) => ({
        number,
        claimed_at_millis: claimedAtMillis,
        started_at_millis: startedAtMillis,
        ended_at_millis: endedAtMillis,
        reason,
        platform,
        lines: linesOf(logTail),
        samples: samples.map(([at_millis, rows_committed]) => ({ at_millis, rows_committed })),
      }),
    ),
  };
};

/** Requires that a job is open and has no later attempt. @throws CatalogError ConcurrentModification */
export function requireLatest(job: JobRecord, attempt: number): void {
  if (isOpen(job) && job.attempt === attempt) return;
  const problem = `the job is ${job.status}, and its latest attempt is ${job.attempt}`;
  throw new CatalogError("ConcurrentModification", problem);
}

export function linesOf(logTail: string): string[] {
  return logTail === "" ? [] : logTail.split("\n");
}

/** A request about the latest attempt at a job. The claim is the random text of its process, which no other one knows. */
interface AttemptRequest {
  readonly id: Identifier;
  readonly attempt: number;
  readonly claim?: string | undefined;
}

/**
 * Changes a job for its latest attempt. A job that has ended stays unchanged, and its status informs the attempt. A job
 * without its object, or still open after its timeout, fails.
 *
 * @throws CatalogError ConcurrentModification if another attempt is the latest one, or if another process runs it.
 */
export async function alterAttempt(
  store: Store,
  request: AttemptRequest,
  change: (session: Session, job: JobRecord) => Promise<JobRecord>,
): Promise<JobRecord> {
  return store.write(async (session) => {
    const latest = await requireAttempt(session, request);
    if (!isOpen(latest)) return latest;
    const altered = (await failWithoutObject(session, latest)) ?? (await change(session, latest));
    const final = (await failAfterTimeout(session, altered)) ?? altered;
    await writeJob(session, final);
    return final;
  });
}

/** Returns a job. @throws CatalogError like `alterAttempt`. */
export async function requireAttempt(session: Session, { id, attempt, claim }: AttemptRequest): Promise<JobRecord> {
  const latest = await requireJob(session, id);
  if (latest.attempt !== attempt)
    throw new CatalogError(
      "ConcurrentModification",
      `attempt ${attempt} is not the latest one, which is ${latest.attempt}`,
    );
  if (claim !== undefined && latest.claim !== undefined && latest.claim !== claim)
    throw new CatalogError("ConcurrentModification", `another process runs attempt ${attempt}`);
  return latest;
}

/**
 * Requires that the latest attempt at an open job has not ended. A resumed job begins another one, and a process that was
 * paused meanwhile must not continue the old one, whose time no longer counts.
 *
 * @throws CatalogError ConcurrentModification
 */
export async function requireNotEnded(session: Session, { id, attempt }: JobRecord): Promise<void> {
  if ((await findAttempt(session, id, attempt))?.endedAtMillis === undefined) return;
  throw new CatalogError("ConcurrentModification", `attempt ${attempt} has ended: another one may follow`);
}

const samplesMax = 120;

/**
 * Adds the present progress of an attempt to its series. A full series first loses every second sample, so its older
 * part is coarser.
 *
 * @returns The series; undefined if the progress has no number of rows.
 */
async function sampled(
  session: Session,
  { id, attempt }: Pick<JobRecord, "id" | "attempt">,
  progress: JobRecord["progress"] | undefined,
): Promise<readonly ProgressSample[] | undefined> {
  const { rows_committed: rows } = progress ?? {};
  if (rows === undefined) return undefined;
  const { samples: series = [] } = (await findAttempt(session, id, attempt)) ?? {};
  const kept = series.length < samplesMax ? series : series.filter((_, index) => index % 2 === 0);
  return [...kept, [session.time(), rows]];
}
