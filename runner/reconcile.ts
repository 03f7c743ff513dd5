import { type Backoff, backoffMs, formatError } from "@tiltyard/protocol";
import { mayPass, reasonOf, settleAll } from "./failure.ts";
import { type CatalogJobs, isWaiting, type OpenJob, type StartableJob } from "./jobs.ts";
import type { Platform, PlatformAttempt } from "./platform.ts";
import { nextJob } from "./queue.ts";

export interface Limits {
  /** The number of attempts before a job fails. */
  readonly attempts: number;
  /** The maximum number of running jobs, in total and for each principal. */
  readonly jobs: number;
  readonly jobsPerPrincipal: number;
  /** The time in milliseconds before a claimed attempt that the platform does not know is submitted again. */
  readonly resubmitMs: number;
  /** The time in milliseconds before an attempt without a heartbeat is superseded. */
  readonly heartbeatTimeoutMs: number;
  /** The maximum time in milliseconds that an attempt waits for resources or for its first worker. */
  readonly capacityTimeoutMs: number;
  /** The maximum time in milliseconds between the allocation of resources and the start of an attempt. */
  readonly startTimeoutMs: number;
  /** The time in milliseconds in which a canceled job should end by itself. */
  readonly cancelGraceMs: number;
  /** The time in milliseconds that a pass spends on attempts of ended jobs. */
  readonly finalMs: number;
  /** The delay before another request about a job after an error that may pass. */
  readonly retry: Backoff;
}

/** The number of interruptions of a job after which attempts that were lost before their start count, too. */
const lostMax = 10;
/** The default reason of an attempt that the platform reports no reason for. */
const noCapacity = "The Ray cluster did not become ready. Is the KubeRay operator running?";

export interface Event {
  readonly job: string;
  readonly text: string;
}

/**
 * Reconciles open jobs: starts, retries and stops attempts until the platform matches the catalog. Each open job has
 * one attempt, within the limits and fairly among principals. A job whose attempt has lost its heartbeat or ended without
 * an outcome is retried, and attempts of ended jobs are stopped.
 *
 * An error about one job ends or delays that job only.
 *
 * All durable state is in the catalog and on the platform. This process only keeps the times since which facts have not
 * changed, as it observed them, so that clocks of other machines do not matter; a new process waits again.
 */
export class Reconciler {
  readonly #jobs: CatalogJobs;
  readonly #platform: Platform;
  readonly #limits: Limits;
  readonly #log: (event: Event) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #unchanged = new Unchanged();
  /** The attempts that were submitted again, with the state of their jobs at that time. Each state is submitted only once. */
  #resubmitted = new Set<string>();
  readonly #delays: Delays;
  /** The order in which principals last got a job started. */
  readonly #served = new Map<string, number>();
  /** The latest attempts on this platform of jobs whose end is not logged yet. */
  readonly #followed = new Map<string, number>();
  /**
   * The latest attempts of jobs that are not on the platform and have not started, and those that were released. A runner
   * that died, or a start that failed halfway, may have left a key there. Undefined before the first pass.
   */
  #unsubmitted: Map<string, number> | undefined;

  constructor(
    { jobs, platform }: { readonly jobs: CatalogJobs; readonly platform: Platform },
    limits: Limits,
    log: (event: Event) => void,
    signal?: AbortSignal,
  ) {
    [this.#jobs, this.#platform] = [jobs, platform];
    [this.#limits, this.#log, this.#signal] = [limits, log, signal];
    this.#delays = new Delays(limits.retry);
  }

  /**
   * Runs one pass. After the signal, it changes no further job, because the Ray of this machine then ends its attempts.
   *
   * @throws Errors of the lists of jobs and of attempts.
   */
  async reconcile(): Promise<void> {
    // The platform is read first: an attempt that has ended there has already reported its outcome to the catalog.
    const attempts = await this.#platform.list();
    const open = await this.#jobs.listOpen();
    const ids = new Set(open.map(({ id }) => id));
    const final = attempts.filter(({ jobId }) => !ids.has(jobId));
    const starting = attempts.filter(({ state }) => state === "starting");
    const withoutCapacity = attempts.filter(needsCapacity);
    this.#unchanged.keep([
      ...open.map(heartbeatKey),
      ...final.map(finalKey),
      ...starting.map(startingKey),
      ...withoutCapacity.map(capacityKey),
    ]);
    this.#delays.keep([
      ...open.flatMap(({ id }) => [observeKey(id), startKey(id)]),
      ...final.map(finalKey),
      ...[...(this.#unsubmitted?.keys() ?? [])].map(endKey),
    ]);

    this.#resubmitted = new Set(open.map(heartbeatKey).filter((key) => this.#resubmitted.has(key)));

    for (const job of this.#followed.keys())
      if (!ids.has(job)) await this.#isolate(endKey(job), job, () => this.#logEnd(job));
    for (const { jobId, number } of attempts)
      if (ids.has(jobId)) this.#followed.set(jobId, Math.max(number, this.#followed.get(jobId) ?? 0));
    await this.#removeUnsubmitted(open, attempts);
    const waiting: OpenJob[] = [];
    const busy: OpenJob[] = [];
    for (const job of open) {
      const isAttempted = await this.#isolate(observeKey(job.id), job.id, async () => {
        this.#platform.requireListed?.(job.id);
        try {
          return await this.#isAttempted(job, attempts);
        } catch (error) {
          if (mayPass(error)) throw error;
          return this.#fail(job, job.attempt, error);
        }
      });
      if (isAttempted === false) waiting.push(job);
      // The attempt of a job with an error may still run.
      else if (job.attempt > 0) busy.push(job);
    }
    await this.#startFairly(waiting, busy);
    await this.#stopAllFinal(final);
  }

  /**
   * Stops attempts of ended jobs, for a limited time. Members of a namespace can forge many of them, which must not delay
   * the next pass. In a random order, each is stopped sooner or later.
   */
  async #stopAllFinal(final: readonly PlatformAttempt[]): Promise<void> {
    const ordered = final.map((attempt) => ({ attempt, order: Math.random() })).toSorted((a, b) => a.order - b.order);
    const untilMs = performance.now() + this.#limits.finalMs;
    for (const { attempt } of ordered) {
      await this.#isolate(finalKey(attempt), attempt.jobId, () => this.#stopFinal(attempt));
      if (performance.now() >= untilMs) return;
    }
  }

  /**
   * Hands the attempts of a platform that has ended to other runners, which need not wait for lost heartbeats.
   *
   * @throws An error about one attempt after the requests about all of them.
   */
  async handOver(): Promise<void> {
    const open = await this.#jobs.listOpen();
    const own = open.filter(({ id, attempt }) => this.#followed.get(id) === attempt);
    this.#followed.clear();
    await settleAll(own.map((job) => this.#jobs.handOver(job)));
  }

  /**
   * Runs work on one job, unless an earlier error delays it. An error is logged and delays the same work.
   *
   * @param key The work.
   * @returns undefined after an error, during a delay and after the signal.
   */
  async #isolate<Result>(key: string, job: string, work: () => Promise<Result>): Promise<Result | undefined> {
    if (this.#signal?.aborted || this.#delays.isDelayed(key)) return undefined;
    try {
      const result = await work();
      this.#delays.reset(key);
      return result;
    } catch (error) {
      this.#delays.add(key);
      this.#log({ job, text: formatError(error) });
      return undefined;
    }
  }

  /** Fails a job that can never run. Its attempt is stopped like that of any ended job. */
  async #fail(job: Pick<OpenJob, "id">, number: number, error: unknown): Promise<true> {
    this.#log({ job: job.id, text: formatError(error) });
    await this.#jobs.fail(job.id, number, { reason: reasonOf(error) });
    return true;
  }

  /** Removes what unsubmitted attempts of ended jobs left on the platform. */
  async #removeUnsubmitted(open: readonly OpenJob[], attempts: readonly PlatformAttempt[]): Promise<void> {
    const before = this.#unsubmitted ?? new Map(await this.#jobs.listUnstarted());
    const present = new Set(attempts.map(attemptKey));
    const next = new Map(
      open
        .filter(({ id, attempt, started_at_millis: started }) => {
          const key = attemptKey({ jobId: id, number: attempt });
          return attempt > 0 && started === undefined && !present.has(key);
        })
        .map(({ id, attempt }) => [id, attempt]),
    );
    const latest = new Map(open.map(({ id, attempt }) => [id, attempt]));
    for (const [jobId, number] of before) {
      const attempt = latest.get(jobId);
      // A released attempt is above the latest one.
      if (attempt !== undefined && number > attempt) next.set(jobId, number);
      if (attempt !== undefined || present.has(attemptKey({ jobId, number }))) continue;
      const removed = await this.#isolate(endKey(jobId), jobId, async () => {
        await this.#platform.stop({ jobId, number });
        return true;
      });
      if (removed === undefined) next.set(jobId, number);
    }
    this.#unsubmitted = next;
  }

  async #logEnd(job: string): Promise<void> {
    this.#followed.delete(job);
    const outcome = await this.#jobs.outcomeOf(job);
    if (outcome !== undefined) this.#log({ job, text: outcome });
  }

  /** Reports whether an attempt of the job waits, runs, or may still run. Handles attempts that have ended. */
  async #isAttempted(job: OpenJob, attempts: readonly PlatformAttempt[]): Promise<boolean> {
    if (job.attempt === 0) return false;
    const attempt = attempts.find(({ jobId, number }) => jobId === job.id && number === job.attempt);
    const isHandedOver = job.heartbeat === undefined;
    if (attempt === undefined && isHandedOver) return false;
    if (
      attempt !== undefined &&
      needsCapacity(attempt) &&
      this.#unchanged.forMs(capacityKey(attempt)) >= this.#limits.capacityTimeoutMs
    )
      return this.#failWithoutCapacity(job, attempt);
    if (attempt?.state === "queued" || attempt?.state === "waiting")
      return this.#jobs.heartbeat(job, attempt.waitReason);
    if (attempt?.state === "running") await this.#jobs.reportWaitReason(job, attempt.waitReason);
    if (attempt?.state === "ended")
      return this.#afterAttempt(job, attempt, attempt.message ?? "it ended without a result");
    if (attempt?.state === "starting") {
      if (this.#unchanged.forMs(startingKey(attempt)) < this.#limits.startTimeoutMs)
        return this.#jobs.heartbeat(job, attempt.waitReason);
      const limit = `it did not start within ${minutes(this.#limits.startTimeoutMs)}`;
      return this.#supersede(job, attempt, attempt.message === undefined ? limit : `${limit}: ${attempt.message}`);
    }
    const unsubmitted = attempt === undefined ? await this.#findUnsubmitted(job) : undefined;
    if (unsubmitted !== undefined) return this.#resubmit(unsubmitted);
    if (this.#unchanged.forMs(heartbeatKey(job)) < this.#limits.heartbeatTimeoutMs) return true;
    if (attempt === undefined && job.started_at_millis === undefined) return this.#releaseLost(job);
    return this.#supersede(job, attempt, "its heartbeat stopped");
  }

  /** Releases a claim that its platform lost before the start, such as that of a Ray that died. It is no attempt. */
  async #releaseLost(job: OpenJob): Promise<true> {
    this.#log({ job: job.id, text: `attempt ${job.attempt} is released: it never started` });
    await this.#release(job.id, job.attempt);
    return true;
  }

  /** Releases an attempt, whose number another runner may then claim. */
  async #release(job: string, number: number): Promise<void> {
    this.#followed.delete(job);
    await this.#jobs.release(job, number);
  }

  /** Stops an attempt that has failed to report. @returns False if the job waits for its next attempt. */
  async #supersede(job: OpenJob, attempt: PlatformAttempt | undefined, reason: string): Promise<boolean> {
    this.#log({ job: job.id, text: `attempt ${job.attempt} is stopped: ${reason}` });
    await this.#platform.stop({ jobId: job.id, number: job.attempt });
    return this.#afterAttempt(job, attempt, reason);
  }

  /**
   * Returns the job of an unknown attempt that was claimed for this platform by a runner that died or lost its connection
   * before the submission; undefined for any other attempt.
   */
  async #findUnsubmitted(job: OpenJob): Promise<StartableJob | undefined> {
    if (job.started_at_millis !== undefined || this.#resubmitted.has(heartbeatKey(job))) return undefined;
    if (this.#unchanged.forMs(heartbeatKey(job)) < this.#limits.resubmitMs) return undefined;
    const startable = await this.#jobs.startable(job);
    if (startable === undefined) return undefined;
    const claimed = new Map(Object.entries(job.platform));
    const own = Object.entries(await this.#platform.describe(startable, job.attempt));
    return own.every(([name, value]) => claimed.get(name) === value) ? startable : undefined;
  }

  /**
   * Submits an attempt again. Its name is derived from the attempt, so it exists only once, and only one of several
   * processes begins.
   */
  async #resubmit(job: StartableJob): Promise<true> {
    this.#log({ job: job.id, text: `attempt ${job.attempt} was not submitted; submitting it` });
    await this.#submit(job, job.attempt);
    this.#resubmitted.add(heartbeatKey(job));
    return true;
  }

  /**
   * Fails a job that waited too long, because another attempt would wait too. Its attempt is stopped like that of any
   * ended job.
   */
  async #failWithoutCapacity(job: OpenJob, { waitReason = noCapacity }: PlatformAttempt): Promise<true> {
    const text = `abandoned after ${minutes(this.#limits.capacityTimeoutMs)} without capacity: ${waitReason}`;
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
    const hasStarted = job.started_at_millis !== undefined;
    if (attempt?.isLost === true && !hasStarted && job.interruptions < lostMax) {
      this.#log({ job: job.id, text: `attempt ${job.attempt} was lost before it started: ${reason}` });
      await this.#jobs.interrupt(job, reason);
      return false;
    }
    const counted = job.attempt - job.interruptions;
    if (counted < this.#limits.attempts) {
      await this.#jobs.end(job, () => describe(reason));
      return false;
    }
    const text = `abandoned after ${counted} attempts: ${reason}`;
    await this.#jobs.fail(job.id, job.attempt, await describe(text));
    this.#log({ job: job.id, text });
    return true;
  }

  /** Starts waiting jobs within the limits. A job that cannot be started does not block the others. */
  async #startFairly(waiting: readonly OpenJob[], busy: readonly OpenJob[]): Promise<void> {
    const running = [...busy];
    let candidates = waiting.filter(({ id }) => !this.#delays.isDelayed(startKey(id)));
    while (running.length < this.#limits.jobs) {
      const job = nextJob(candidates, running, this.#served, this.#limits.jobsPerPrincipal);
      if (job === undefined) return;
      candidates = candidates.filter((each) => each !== job);
      if (!(await this.#isolate(startKey(job.id), job.id, () => this.#start(job)))) continue;
      running.push(job);
      this.#served.delete(job.principal);
      this.#served.set(job.principal, performance.now());
    }
  }

  /** Starts the next attempt of a job. @returns False if the job waits for another attempt or has ended. */
  async #start(job: OpenJob): Promise<boolean> {
    const number = job.attempt + 1;
    const startable = await this.#jobs.startable(job);
    if (startable === undefined) return false;
    let platform: OpenJob["platform"];
    try {
      platform = await this.#platform.describe(startable, number);
    } catch (error) {
      if (mayPass(error)) throw error;
      // Only an attempt can fail its job.
      if (await this.#jobs.claimNext(job, {})) await this.#fail(job, number, error);
      return false;
    }
    if (!(await this.#jobs.claimNext(job, platform))) return true;
    this.#log({ job: job.id, text: `attempt ${number}` });
    this.#followed.set(job.id, number);
    return this.#submit({ ...startable, platform }, number);
  }

  /** Submits a claimed attempt. @returns False if the job has failed. @throws Errors that may pass. */
  async #submit(job: StartableJob, number: number): Promise<boolean> {
    try {
      const apiKey = await this.#jobs.createKey(job.id, number);
      if (apiKey === undefined) return true;
      await this.#platform.start({ job, number, apiKey });
      return true;
    } catch (error) {
      if (!mayPass(error)) {
        await this.#fail(job, number, error);
        return false;
      }
      // An attempt that did not begin does not count. A claim that remains is submitted again or superseded later.
      if (await this.#isAbsent(job.id, number)) {
        this.#unsubmitted?.set(job.id, number);
        await this.#release(job.id, number).catch(() => {});
      }
      throw error;
    }
  }

  /**
   * Reports whether the platform certainly has no attempt. A start that failed halfway, or whose response was lost, may
   * have begun it.
   */
  async #isAbsent(id: string, number: number): Promise<boolean> {
    try {
      const attempts = await this.#platform.list();
      this.#platform.requireListed?.(id);
      return attempts.every((each) => each.jobId !== id || each.number !== number);
    } catch {
      return false;
    }
  }

  /** Stops an attempt of an ended or paused job that does not stop itself at its next heartbeat. */
  async #stopFinal(attempt: PlatformAttempt): Promise<void> {
    if (attempt.state === "ended") return this.#platform.forget(attempt);
    const { stopped, hasStarted } = await this.#jobs.stateOf(attempt.jobId);
    // A job that was opened after the list was read has not ended.
    if (stopped === undefined) return;
    if (hasStarted && this.#unchanged.forMs(finalKey(attempt)) < this.#limits.cancelGraceMs) return;
    this.#log({ job: attempt.jobId, text: `attempt ${attempt.number} is stopped: the job is ${stopped}` });
    await this.#platform.stop(attempt);
  }
}

function minutes(ms: number): string {
  return `${Math.round(ms / 60_000)} min`;
}

function heartbeatKey({ id, attempt, heartbeat }: OpenJob): string {
  return `heartbeat ${id} ${attempt} ${heartbeat}`;
}

/** Reports whether an attempt waits for resources. The wait in a queue does not count. */
function needsCapacity({ state, waitReason }: PlatformAttempt): boolean {
  return state === "waiting" || (state === "running" && waitReason !== undefined);
}

function capacityKey({ jobId, number }: PlatformAttempt): string {
  return `capacity ${jobId} ${number}`;
}

function attemptKey({ jobId, number }: Pick<PlatformAttempt, "jobId" | "number">): string {
  return `${jobId} ${number}`;
}

function observeKey(id: string): string {
  return `observe ${id}`;
}

function startKey(id: string): string {
  return `start ${id}`;
}

function startingKey({ jobId, number }: PlatformAttempt): string {
  return `starting ${jobId} ${number}`;
}

function endKey(id: string): string {
  return `end ${id}`;
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

/** The delays of work that has failed, as this process observed it. */
class Delays {
  readonly #backoff: Backoff;
  #failed = new Map<string, { readonly failures: number; readonly untilMs: number }>();

  constructor(backoff: Backoff) {
    this.#backoff = backoff;
  }

  /** Deletes the delays of all other work. */
  keep(keys: readonly string[]): void {
    this.#failed = new Map(
      keys.flatMap((key) => {
        const found = this.#failed.get(key);
        return found === undefined ? [] : [[key, found] as const];
      }),
    );
  }

  isDelayed(key: string): boolean {
    return performance.now() < (this.#failed.get(key)?.untilMs ?? 0);
  }

  add(key: string): void {
    const failures = (this.#failed.get(key)?.failures ?? 0) + 1;
    this.#failed.set(key, { failures, untilMs: performance.now() + backoffMs(failures - 1, this.#backoff) });
  }

  reset(key: string): void {
    this.#failed.delete(key);
  }
}
