import { type CatalogJobs, isWaiting, type OpenJob } from "./jobs.ts";
import { NeedsError, PlaceLostError, type Platform, type PlatformAttempt } from "./platform.ts";

export interface Limits {
  /** The number of attempts before a job fails. */
  readonly attempts: number;
  /** The maximum number of running jobs, in total and for each principal. */
  readonly jobs: number;
  readonly jobsPerPrincipal: number;
  /** The time in milliseconds before a claimed attempt that the platform does not know is submitted again. */
  readonly resubmitMs: number;
  /** The time in milliseconds before an attempt without a heartbeat is superseded. */
  readonly takeOverMs: number;
  /** The maximum time in milliseconds that an attempt waits for resources or for its first worker. */
  readonly roomMs: number;
  /** The maximum time in milliseconds between the allocation of resources and the start of an attempt. */
  readonly startMs: number;
  /** The time in milliseconds in which a canceled job should end by itself. */
  readonly cancelGraceMs: number;
}

/** The default reason of an attempt that the platform reports no reason for. */
const noRoom = "The Ray cluster did not become ready. Is the KubeRay operator running?";

export interface Event {
  readonly job: string;
  readonly text: string;
}

/**
 * Reconciles open jobs: starts, retries and stops attempts until the platform matches the catalog. Each open job has
 * one attempt, the oldest jobs first within the limits. A job whose attempt has lost its heartbeat or ended without an
 * outcome is retried, and attempts of ended jobs are stopped.
 *
 * All durable state is in the catalog and on the platform. This process only keeps the times since which facts have not
 * changed, as it observed them, so that clocks of other machines do not matter; a new process waits again.
 */
export class Reconciler {
  readonly #jobs: CatalogJobs;
  readonly #platform: Platform;
  readonly #limits: Limits;
  readonly #log: (event: Event) => void;
  readonly #unchanged = new Unchanged();
  /** The attempts that were submitted again, with the state of their jobs at that time. Each state is submitted only once. */
  #resubmitted = new Set<string>();

  constructor(
    { jobs, platform }: { readonly jobs: CatalogJobs; readonly platform: Platform },
    limits: Limits,
    log: (event: Event) => void,
  ) {
    [this.#jobs, this.#platform] = [jobs, platform];
    [this.#limits, this.#log] = [limits, log];
  }

  /** Runs one pass. It may fail halfway, and the next pass continues. */
  async reconcile(): Promise<void> {
    // The platform is read first: an attempt that has ended there has already reported its outcome to the catalog.
    const attempts = await this.#platform.list();
    const open = await this.#jobs.listOpen();
    const final = attempts.filter(({ jobId }) => open.every(({ id }) => id !== jobId));
    const starting = attempts.filter(({ state }) => state === "starting");
    const withoutRoom = attempts.filter(needsRoom);
    this.#unchanged.keep([
      ...open.map(heartbeatKey),
      ...final.map(finalKey),
      ...starting.map(startingKey),
      ...withoutRoom.map(roomKey),
    ]);

    this.#resubmitted = new Set(open.map(heartbeatKey).filter((key) => this.#resubmitted.has(key)));

    const waiting: OpenJob[] = [];
    const busy: OpenJob[] = [];
    for (const job of open) ((await this.#isAttempted(job, attempts)) ? busy : waiting).push(job);
    const failure = await this.#startFairly(waiting, busy);
    await this.#stopFinal(final);
    await this.#platform.prepare(attempts);
    if (failure !== undefined) throw failure;
  }

  /** Reports whether an attempt of the job waits, runs, or may still run. Handles attempts that have ended. */
  async #isAttempted(job: OpenJob, attempts: readonly PlatformAttempt[]): Promise<boolean> {
    if (job.attempt === 0) return false;
    const attempt = attempts.find(({ jobId, number }) => jobId === job.id && number === job.attempt);
    if (attempt !== undefined && needsRoom(attempt) && this.#unchanged.forMs(roomKey(attempt)) >= this.#limits.roomMs)
      return this.#failForLackOfRoom(job, attempt);
    if (attempt?.state === "queued" || attempt?.state === "waiting") return this.#jobs.beat(job, attempt.lack);
    if (attempt?.state === "running") await this.#jobs.reportLack(job, attempt.lack);
    if (attempt?.state === "ended")
      return this.#afterAttempt(job, attempt, attempt.message ?? "it ended without a result");
    if (attempt?.state === "starting") {
      if (this.#unchanged.forMs(startingKey(attempt)) < this.#limits.startMs) return this.#jobs.beat(job, attempt.lack);
      const limit = `it did not start within ${minutes(this.#limits.startMs)}`;
      return this.#supersede(job, attempt, attempt.message === undefined ? limit : `${limit}: ${attempt.message}`);
    }
    if (attempt === undefined && (await this.#isUnsubmitted(job))) return this.#resubmit(job);
    if (this.#unchanged.forMs(heartbeatKey(job)) < this.#limits.takeOverMs) return true;
    return this.#supersede(job, attempt, "its heartbeat stopped");
  }

  /** Stops an attempt that has failed to report. @returns False if the job waits for its next attempt. */
  async #supersede(job: OpenJob, attempt: PlatformAttempt | undefined, reason: string): Promise<boolean> {
    this.#log({ job: job.id, text: `attempt ${job.attempt} is stopped: ${reason}` });
    await this.#platform.stop({ jobId: job.id, number: job.attempt });
    return this.#afterAttempt(job, attempt, reason);
  }

  /**
   * Reports whether an unknown attempt was claimed for this platform by a runner that died or lost its connection
   * before the submission.
   */
  async #isUnsubmitted(job: OpenJob): Promise<boolean> {
    if (job.started_at_millis !== undefined || this.#resubmitted.has(heartbeatKey(job))) return false;
    if (this.#unchanged.forMs(heartbeatKey(job)) < this.#limits.resubmitMs) return false;
    const own = Object.entries(await this.#platform.describe(job, job.attempt));
    return own.every(([name, value]) => job.platform[name] === value);
  }

  /**
   * Submits an attempt again. Its name is derived from the attempt, so it exists only once, and only one of several
   * processes begins.
   */
  async #resubmit(job: OpenJob): Promise<true> {
    this.#log({ job: job.id, text: `attempt ${job.attempt} was not submitted; submitting it` });
    await this.#submit(job, job.attempt);
    this.#resubmitted.add(heartbeatKey(job));
    return true;
  }

  /**
   * Fails a job that waited too long, because another attempt would wait too. Its attempt is stopped like that of any
   * ended job.
   */
  async #failForLackOfRoom(job: OpenJob, { lack = noRoom }: PlatformAttempt): Promise<true> {
    const text = `abandoned after ${minutes(this.#limits.roomMs)} without room: ${lack}`;
    await this.#jobs.fail(job.id, job.attempt, { reason: text });
    this.#log({ job: job.id, text });
    return true;
  }

  /**
   * Handles the end of an attempt.
   *
   * @param observed The reason of its end as this runner knows it. That of the attempt itself has precedence.
   * @returns False if the job waits for its next attempt.
   */
  async #afterAttempt(job: OpenJob, attempt: PlatformAttempt | undefined, observed: string): Promise<boolean> {
    const describe = async (reason: string) => {
      const log = attempt === undefined ? "" : await this.#platform.lastLines(attempt);
      return { reason, ...(log !== "" && { log_tail: log }) };
    };
    const reason = isWaiting(job.reason) ? observed : (job.reason ?? observed);
    if (job.attempt < this.#limits.attempts) {
      await this.#jobs.end(job, () => describe(reason));
      return false;
    }
    const text = `abandoned after ${job.attempt} attempts: ${reason}`;
    await this.#jobs.fail(job.id, job.attempt, await describe(text));
    this.#log({ job: job.id, text });
    return true;
  }

  /** Starts waiting jobs. @returns The first error. A job that cannot be started does not block the others. */
  async #startFairly(waiting: readonly OpenJob[], busy: readonly OpenJob[]): Promise<unknown> {
    const running = [...busy];
    const failures: unknown[] = [];
    for (const job of waiting) {
      if (running.length >= this.#limits.jobs) break;
      if (running.filter(({ principal }) => principal === job.principal).length >= this.#limits.jobsPerPrincipal)
        continue;
      try {
        if (await this.#start(job)) running.push(job);
      } catch (error) {
        failures.push(error);
      }
    }
    return failures[0];
  }

  async #start(job: OpenJob): Promise<boolean> {
    const number = job.attempt + 1;
    const platform = await this.#platform.describe(job, number);
    if (!(await this.#jobs.claimNext(job, platform))) return true;
    this.#log({ job: job.id, text: `attempt ${number}` });
    return this.#submit({ ...job, platform }, number);
  }

  /** Submits a claimed attempt. @returns False if the job waits for another attempt or has failed. */
  async #submit(job: OpenJob, number: number): Promise<boolean> {
    try {
      const apiKey = await this.#jobs.createKey(job.id, number);
      if (apiKey === undefined) return true;
      await this.#platform.start({ job, number, apiKey });
      return true;
    } catch (error) {
      if (!(error instanceof NeedsError)) {
        // An attempt that did not begin does not count. A claim that remains is submitted again or superseded later.
        if (await this.#isAbsent(job.id, number)) await this.#jobs.release(job.id, number).catch(() => {});
        if (error instanceof PlaceLostError) return false;
        throw error;
      }
      await this.#jobs.fail(job.id, number, { reason: error.message });
      this.#log({ job: job.id, text: error.message });
      return false;
    }
  }

  /**
   * Reports whether the platform certainly has no attempt. A start that failed halfway, or whose response was lost, may
   * have begun it.
   */
  async #isAbsent(id: string, number: number): Promise<boolean> {
    try {
      return (await this.#platform.list()).every((each) => each.jobId !== id || each.number !== number);
    } catch {
      return false;
    }
  }

  /** Stops attempts of ended jobs that do not stop themselves at their next heartbeat. */
  async #stopFinal(final: readonly PlatformAttempt[]): Promise<void> {
    for (const attempt of final) {
      if (attempt.state === "ended") {
        await this.#platform.forget(attempt);
        continue;
      }
      const { status, hasStarted } = await this.#jobs.stateOf(attempt.jobId);
      // A job that was opened after the list was read has not ended.
      if (status === "Queued" || status === "Running") continue;
      if (hasStarted && this.#unchanged.forMs(finalKey(attempt)) < this.#limits.cancelGraceMs) continue;
      this.#log({ job: attempt.jobId, text: `attempt ${attempt.number} is stopped: the job is ${status ?? "gone"}` });
      await this.#platform.stop(attempt);
    }
  }
}

function minutes(ms: number): string {
  return `${Math.round(ms / 60_000)} min`;
}

function heartbeatKey({ id, attempt, heartbeat }: OpenJob): string {
  return `heartbeat ${id} ${attempt} ${heartbeat}`;
}

/** Reports whether an attempt waits for resources. The wait in a queue does not count. */
function needsRoom({ state, lack }: PlatformAttempt): boolean {
  return state === "waiting" || (state === "running" && lack !== undefined);
}

function roomKey({ jobId, number }: PlatformAttempt): string {
  return `room ${jobId} ${number}`;
}

function startingKey({ jobId, number }: PlatformAttempt): string {
  return `starting ${jobId} ${number}`;
}

function finalKey({ jobId, number }: PlatformAttempt): string {
  return `final ${jobId} ${number}`;
}

/** The times since which facts have not changed, as this process observed them. */
class Unchanged {
  #since = new Map<string, number>();

  /** Records the current facts and deletes all others. */
  keep(facts: readonly string[]): void {
    const now = performance.now();
    this.#since = new Map(facts.map((fact) => [fact, this.#since.get(fact) ?? now]));
  }

  forMs(fact: string): number {
    return performance.now() - (this.#since.get(fact) ?? performance.now());
  }
}
