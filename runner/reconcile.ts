import { type CatalogJobs, hasBegun, type OpenJob } from "./jobs.ts";
import { NeedsError, type Platform, type PlatformAttempt } from "./platform.ts";

export interface Limits {
  /** How often a job is attempted before it is Failed. */
  readonly attempts: number;
  /** How many jobs run at a time, of all principals and of each. */
  readonly jobs: number;
  readonly jobsPerPrincipal: number;
  /** How long a claimed attempt may be unknown to the platform before it is submitted again, in milliseconds. */
  readonly resubmitMs: number;
  /** How long an attempt may be without a heartbeat before it is taken over, in milliseconds. */
  readonly takeOverMs: number;
  /** How long an attempt may wait for room, or for its first worker, in milliseconds. */
  readonly roomMs: number;
  /** How long an attempt that has room may take to run, in milliseconds. */
  readonly startMs: number;
  /** How long a job that was canceled may take to end by itself, in milliseconds. */
  readonly cancelGraceMs: number;
}

/** Of an attempt whose platform tells no more. */
const noRoom = "its Ray cluster does not get ready: is the KubeRay operator running?";

export interface Event {
  readonly job: string;
  readonly text: string;
}

/**
 * Makes true what should be true of open jobs: each has one attempt, oldest first within the limits; what has
 * lost its heartbeat or ended without an outcome is attempted again; what has ended in the catalog is stopped.
 *
 * All that must last is in the catalog and on the platform. What is kept here is since when things have not
 * changed, as this process saw it, so that no clock of another machine counts; a new process waits anew.
 */
export class Reconciler {
  readonly #jobs: CatalogJobs;
  readonly #platform: Platform;
  readonly #limits: Limits;
  readonly #tell: (event: Event) => void;
  readonly #unchanged = new Unchanged();
  /** Which attempts were submitted anew, as their jobs were then: once is enough. */
  #resubmitted = new Set<string>();

  constructor(
    { jobs, platform }: { readonly jobs: CatalogJobs; readonly platform: Platform },
    limits: Limits,
    tell: (event: Event) => void,
  ) {
    [this.#jobs, this.#platform] = [jobs, platform];
    [this.#limits, this.#tell] = [limits, tell];
  }

  /** One pass. It may fail half-way: the next one goes on. */
  async reconcile(): Promise<void> {
    // First the platform: an attempt that is seen ended has told the catalog its outcome before.
    const attempts = await this.#platform.list();
    const open = await this.#jobs.listOpen();
    const final = attempts.filter(({ jobId }) => open.every(({ id }) => id !== jobId));
    const starting = attempts.filter(({ state }) => state === "starting");
    const homeless = attempts.filter(needsRoom);
    this.#unchanged.keep([
      ...open.map(heartbeatKey),
      ...final.map(finalKey),
      ...starting.map(startingKey),
      ...homeless.map(roomKey),
    ]);

    this.#resubmitted = new Set(open.map(heartbeatKey).filter((key) => this.#resubmitted.has(key)));

    const waiting: OpenJob[] = [];
    const busy: OpenJob[] = [];
    for (const job of open) ((await this.#isAttempted(job, attempts)) ? busy : waiting).push(job);
    const failure = await this.#startFairly(waiting, busy);
    await this.#stopFinal(final);
    if (failure !== undefined) throw failure;
  }

  /** Whether an attempt of the job waits, runs, or may still run; what has ended is looked after. */
  async #isAttempted(job: OpenJob, attempts: readonly PlatformAttempt[]): Promise<boolean> {
    if (job.attempt === 0) return false;
    const attempt = attempts.find(({ jobId, number }) => jobId === job.id && number === job.attempt);
    if (attempt !== undefined && needsRoom(attempt) && this.#unchanged.forMs(roomKey(attempt)) >= this.#limits.roomMs)
      return this.#endInVain(job, attempt);
    if (attempt?.state === "queued" || attempt?.state === "waiting") return this.#jobs.beat(job, attempt.lack);
    if (attempt?.state === "running") await this.#jobs.tellLack(job, attempt.lack);
    if (attempt?.state === "ended") return this.#afterAttempt(job, attempt);
    if (attempt?.state === "starting") {
      if (this.#unchanged.forMs(startingKey(attempt)) < this.#limits.startMs) return this.#jobs.beat(job, attempt.lack);
      this.#tell({ job: job.id, text: `attempt ${job.attempt} does not start` });
    } else {
      if (attempt === undefined && (await this.#isUnsubmitted(job))) return this.#submitAnew(job);
      if (this.#unchanged.forMs(heartbeatKey(job)) < this.#limits.takeOverMs) return true;
      this.#tell({ job: job.id, text: `attempt ${job.attempt} has no heartbeat any more` });
    }
    await this.#platform.stop({ jobId: job.id, number: job.attempt });
    return this.#afterAttempt(job, attempt);
  }

  /** Whether an attempt that is nowhere was claimed for this platform, by one that died or was cut off before it submitted it. */
  async #isUnsubmitted(job: OpenJob): Promise<boolean> {
    if (hasBegun(job) || this.#resubmitted.has(heartbeatKey(job))) return false;
    if (this.#unchanged.forMs(heartbeatKey(job)) < this.#limits.resubmitMs) return false;
    const own = Object.entries(await this.#platform.describe(job.id, job.attempt));
    return own.every(([name, value]) => job.platform[name] === value);
  }

  /** Its name is made from it, so that it is there once; of several processes one begins. */
  async #submitAnew(job: OpenJob): Promise<true> {
    this.#tell({ job: job.id, text: `attempt ${job.attempt} was not submitted; submitting it` });
    const apiKey = await this.#jobs.makeKey(job.id, job.attempt);
    if (apiKey === undefined) return true;
    await this.#platform.start({ job, number: job.attempt, apiKey });
    this.#resubmitted.add(heartbeatKey(job));
    return true;
  }

  /** Another attempt would wait for the same. What is there of this one is stopped as that of any job that has ended. */
  async #endInVain(job: OpenJob, { lack = noRoom }: PlatformAttempt): Promise<true> {
    const text = `given up after ${Math.round(this.#limits.roomMs / 60_000)} min without room: ${lack}`;
    await this.#jobs.fail(job, { reason: text });
    this.#tell({ job: job.id, text });
    return true;
  }

  /** @returns false when the job waits for its next attempt. */
  async #afterAttempt(job: OpenJob, attempt: PlatformAttempt | undefined): Promise<boolean> {
    if (job.attempt < this.#limits.attempts) return false;
    const log = attempt === undefined ? "" : await this.#platform.lastLines(attempt);
    const reason = job.reason ?? attempt?.message ?? "its heartbeat stopped";
    const text = `given up after ${job.attempt} attempts: ${reason}`;
    await this.#jobs.fail(job, { reason: text, ...(log !== "" && { log_tail: log }) });
    this.#tell({ job: job.id, text });
    return true;
  }

  /** @returns What the first one failed with that could not be started: it is no hindrance to the others. */
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
    if (!(await this.#jobs.claimNext(job, await this.#platform.describe(job.id, number)))) return true;
    this.#tell({ job: job.id, text: `attempt ${number}` });
    try {
      const apiKey = await this.#jobs.makeKey(job.id, number);
      if (apiKey === undefined) return true;
      await this.#platform.start({ job, number, apiKey });
      return true;
    } catch (error) {
      if (!(error instanceof NeedsError)) {
        // What did not begin is no attempt. A claim that is kept is submitted anew, or taken over in time.
        if (await this.#isAbsent(job.id, number)) await this.#jobs.release(job).catch(() => {});
        throw error;
      }
      await this.#jobs.fail({ ...job, attempt: number }, { reason: error.message });
      this.#tell({ job: job.id, text: error.message });
      return false;
    }
  }

  /** Whether the platform is known not to have an attempt: a start that failed half-way, or whose answer was lost, may have begun it. */
  async #isAbsent(id: string, number: number): Promise<boolean> {
    try {
      return (await this.#platform.list()).every((each) => each.jobId !== id || each.number !== number);
    } catch {
      return false;
    }
  }

  /** What has ended in the catalog stops by itself at its next heartbeat; what does not, is stopped. */
  async #stopFinal(final: readonly PlatformAttempt[]): Promise<void> {
    for (const attempt of final) {
      if (attempt.state === "ended") {
        await this.#platform.forget(attempt);
        continue;
      }
      const { status, hasBegun } = await this.#jobs.stateOf(attempt.jobId);
      // One that was opened after the list was read is not final.
      if (status === "Queued" || status === "Running") continue;
      if (hasBegun && this.#unchanged.forMs(finalKey(attempt)) < this.#limits.cancelGraceMs) continue;
      this.#tell({ job: attempt.jobId, text: `attempt ${attempt.number} is stopped: the job is ${status ?? "gone"}` });
      await this.#platform.stop(attempt);
    }
  }
}

function heartbeatKey({ id, attempt, heartbeat }: OpenJob): string {
  return `heartbeat ${id} ${attempt} ${heartbeat}`;
}

/** Whether an attempt has no place yet to do its work: a queue gives it one in its own time. */
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

/** Since when facts are as they are, as this process saw them. */
class Unchanged {
  #since = new Map<string, number>();

  /** Notes which facts there are now, and forgets the others. */
  keep(facts: readonly string[]): void {
    const now = performance.now();
    this.#since = new Map(facts.map((fact) => [fact, this.#since.get(fact) ?? now]));
  }

  forMs(fact: string): number {
    return performance.now() - (this.#since.get(fact) ?? performance.now());
  }
}
