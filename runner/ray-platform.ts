import { type JobDetails, JobError, type JobsApi } from "@tiltyard/client";
import { exitCodes, lastLinesOf, messageOfRay } from "./job-text.ts";
import type { StartableJob } from "./jobs.ts";
import {
  type AttemptState,
  argumentsOf,
  bareIdOf,
  entrypointOf,
  isJobId,
  NeedsError,
  type Platform,
  type PlatformAttempt,
  type StartRequest,
} from "./platform.ts";
import { type Runtime, runtimeOf } from "./runtime-env.ts";
import { isOpen, isStandby, keyFile, Standby, type SubmittedRay, submit } from "./standby.ts";

/** The time in milliseconds for which Ray keeps an ended job. */
const keptMs = 3_600_000;
/** The length of an output that is read for its last lines. */
const outputBytesMax = 16 * 1024 ** 2;
/** The number that a shell adds to the signal that killed its command. */
const shellSignals = 128;
const idPattern = /^tiltyard-.+-(\d+)$/;

const states: Readonly<Record<JobDetails["status"], AttemptState>> = {
  PENDING: "starting",
  RUNNING: "running",
  SUCCEEDED: "ended",
  FAILED: "ended",
  STOPPED: "ended",
};

/** The connections of the platform. */
export interface RayPlatformOptions {
  /** Returns the current Ray, which is a new one after the death of the previous one. */
  readonly ray: () => Promise<SubmittedRay>;
  readonly catalogUrl: string;
  readonly leaseSeconds: number;
  /** The time in milliseconds without a job after which no process waits for the next one; 0 if none ever waits. */
  readonly standbyMs: number;
}

/** The name of an attempt and the process that has waited for it. */
interface Assigned {
  readonly name: string;
  readonly jobId: string;
  readonly standby: Standby;
}

/**
 * Runs attempts as jobs of one Ray through its Jobs API. The name of a job is derived from its attempt, unless a process
 * on the runner's own Ray has waited for the attempt.
 */
export class RayPlatform implements Platform {
  readonly #options: RayPlatformOptions;
  /** The process that waits for the next attempt. */
  #standby: Standby | undefined;
  readonly #assigned = new Map<string, Assigned>();
  /** The environment and the time of the last attempt. */
  #last = { env: runtimeOf(undefined).env, at: performance.now() };

  constructor(options: RayPlatformOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly PlatformAttempt[]> {
    const { jobs } = await this.#options.ray();
    return (await jobs.list()).flatMap((details) => this.#toAttempt(details));
  }

  #toAttempt(details: JobDetails): PlatformAttempt[] {
    const id = details.submission_id ?? "";
    const assigned = this.#assigned.get(id);
    const [, number] = idPattern.exec(assigned?.name ?? id) ?? [];
    const jobId = assigned?.jobId ?? details.metadata?.tiltyard_job;
    if (number === undefined || !isJobId(jobId)) return [];
    const state = states[details.status];
    const endedAtMillis = details.end_time ?? undefined;
    const isLost = isLostByRay(details);
    return [{ jobId, number: Number(number), state, message: messageOf(details), isLost, endedAtMillis }];
  }

  /**
   * Starts a process that waits for the next attempt while no attempt runs, and ends it if no job has used it for some
   * time. Its environment is that of the last attempt.
   */
  async prepare(): Promise<void> {
    const { standbyMs } = this.#options;
    if (standbyMs === 0) return;
    const ray = await this.#options.ray();
    const found = await ray.jobs.list();
    const open = new Set(found.flatMap((each) => (isOpen(each) ? [each.submission_id] : [])));
    for (const [id, { standby }] of this.#assigned) if (!open.has(id)) standby.discard();
    for (const id of this.#assigned.keys())
      if (found.every((each) => each.submission_id !== id)) this.#assigned.delete(id);
    await this.#forgetUnused(found);
    const isIdle = performance.now() - this.#last.at > standbyMs;
    if (this.#standby !== undefined && (isIdle || !this.#standby.fits(ray, this.#last.env))) {
      this.#standby.discard();
      this.#standby = undefined;
    }
    // A process that died would die again.
    if (this.#standby !== undefined && !open.has(this.#standby.submissionId)) return this.#waitForJob();
    const isBusy = found.some((each) => isOpen(each) && this.#toAttempt(each).length > 0);
    if (this.#standby === undefined && !isIdle && !isBusy)
      this.#standby = await Standby.start(ray, this.#last.env, this.#options.catalogUrl).catch(() =>
        this.#waitForJob(),
      );
  }

  /** Deletes processes that ended some time ago without an attempt from Ray, like attempts. */
  async #forgetUnused(found: readonly JobDetails[]): Promise<void> {
    const unused = found.filter((each) => isStandby(each) && !isOpen(each));
    for (const { submission_id: id, end_time: endedAtMillis } of unused)
      if (id !== null && !this.#assigned.has(id) && Date.now() - (endedAtMillis ?? Date.now()) >= keptMs)
        await this.#unlessMissing((jobs) => jobs.delete(id));
  }

  /** Reports whether a process waits for the next attempt. */
  get isPrepared(): boolean {
    return this.#standby !== undefined;
  }

  /** Prepares nothing before the next job, which then shows the error. */
  #waitForJob(): undefined {
    this.#last.at = Number.NEGATIVE_INFINITY;
  }

  async start({ job, number, apiKey }: StartRequest): Promise<void> {
    const { manifest, cluster, cluster_definition: definition } = job.parameters;
    if (cluster !== undefined && definition === undefined)
      throw new NeedsError(
        `cluster: ${JSON.stringify(cluster)} is unknown: this runner has one Ray. Leave cluster out`,
      );
    const { env, secretEnv, headImage, workerImage } = runtimeOf(manifest);
    const [secret] = Object.keys(secretEnv);
    if (secret !== undefined)
      throw new NeedsError(
        `manifest: env_vars.${secret} is in a Secret of Kubernetes, where the jobs of this runner do not run: set the variable for its Ray`,
      );
    if (headImage !== undefined || workerImage !== undefined)
      throw new NeedsError("manifest: this Ray does not run in a container, so it cannot use another image");
    const ray = await this.#options.ray();
    const { catalogUrl, leaseSeconds } = this.#options;
    this.#last = { env, at: performance.now() };
    const standby = await this.#claimStandby(ray, env);
    if (standby !== undefined) {
      standby.assign(argumentsOf(job.id, number, leaseSeconds), apiKey);
      this.#assigned.set(standby.submissionId, { name: nameOf(job.id, number), jobId: job.id, standby });
      return;
    }
    try {
      await submit(ray, {
        entrypoint: entrypointOf(job.id, number, leaseSeconds),
        submissionId: nameOf(job.id, number),
        env,
        connection: { TILTYARD_CATALOG_URL: catalogUrl, TILTYARD_API_KEY_FILE: keyFile },
        apiKey,
        metadata: { tiltyard_job: job.id },
      });
    } catch (error) {
      if (!(error instanceof JobError && error.message.includes("already exists"))) throw error;
    }
  }

  /** Returns the process that waits in an environment, once. */
  async #claimStandby(ray: SubmittedRay, env: Runtime["env"]): Promise<Standby | undefined> {
    const standby = this.#standby;
    if (standby === undefined || !standby.fits(ray, env)) return undefined;
    this.#standby = undefined;
    if (await standby.isAlive().catch(() => false)) return standby;
    standby.discard();
    return undefined;
  }

  async stop({ jobId, number }: Pick<PlatformAttempt, "jobId" | "number">): Promise<void> {
    await this.#unlessMissing((jobs) => jobs.stop(this.#submissionOf(jobId, number)));
  }

  /**
   * Deletes the job from Ray some time after its end, because Ray keeps and lists all jobs. Until then,
   * `tiltyard ray job logs` shows it.
   */
  async forget({ jobId, number, endedAtMillis = 0 }: PlatformAttempt): Promise<void> {
    if (Date.now() - endedAtMillis < keptMs) return;
    await this.#unlessMissing((jobs) => jobs.delete(this.#submissionOf(jobId, number)));
  }

  async #unlessMissing(request: (jobs: JobsApi) => Promise<void>): Promise<void> {
    try {
      await request((await this.#options.ray()).jobs);
    } catch (error) {
      if (!(error instanceof JobError && error.message.includes("does not exist"))) throw error;
    }
  }

  /**
   * Returns the end of the output. An attempt whose packages could not be installed has none, but Ray's message. Ray only
   * returns a whole output, which may have gigabytes, and its message has the end, too.
   */
  async lastLines({ jobId, number }: PlatformAttempt): Promise<string> {
    try {
      const { jobs } = await this.#options.ray();
      const id = this.#submissionOf(jobId, number);
      const output = await jobs.output(id, outputBytesMax).catch((error) => {
        if (error instanceof JobError) return "";
        throw error;
      });
      return lastLinesOf(output || ((await jobs.details(id)).message ?? ""));
    } catch (error) {
      if (error instanceof JobError) return "";
      throw error;
    }
  }

  async describe(job: StartableJob, number: number): Promise<Readonly<Record<string, string>>> {
    const ray = await this.#options.ray();
    const next = this.#waitsFor(job, ray) ? this.#standby?.submissionId : undefined;
    return { ray_address: ray.dashboardUrl, ray_submission_id: next ?? this.#submissionOf(job.id, number) };
  }

  #waitsFor({ parameters }: StartableJob, ray: SubmittedRay): boolean {
    try {
      return this.#standby?.fits(ray, runtimeOf(parameters.manifest).env) ?? false;
    } catch (error) {
      // The start of the attempt reports it.
      if (error instanceof NeedsError) return false;
      throw error;
    }
  }

  #submissionOf(jobId: string, number: number): string {
    const name = nameOf(jobId, number);
    return [...this.#assigned].find(([, assigned]) => assigned.name === name)?.[0] ?? name;
  }
}

/**
 * Returns the name of an attempt, which is the id of its job. Ray accepts each id once, so an attempt starts only once
 * even if it is submitted repeatedly.
 */
function nameOf(jobId: string, number: number): string {
  return `tiltyard-${bareIdOf(jobId)}-${number}`;
}

/** Reports whether the process of a job was killed, failed temporarily, or was lost with the actor that supervises it. */
function isLostByRay({ status, error_type: kind, driver_exit_code: code }: JobDetails): boolean {
  if (status !== "FAILED") return false;
  if (typeof code === "number") return code < 0 || code > shellSignals || code === exitCodes.AGAIN;
  return kind?.startsWith("JOB_SUPERVISOR_ACTOR_") === true;
}

function messageOf({ message, status }: JobDetails): string | undefined {
  return status === "SUCCEEDED" || typeof message !== "string" ? undefined : messageOfRay(message);
}
