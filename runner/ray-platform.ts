import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JobDetails, JobError, type JobsApi } from "@tiltyard/client";
import writeFileAtomic from "write-file-atomic";
import {
  type AttemptState,
  bareIdOf,
  entrypointOf,
  lastLinesOf,
  NeedsError,
  type Platform,
  type PlatformAttempt,
  type StartRequest,
} from "./platform.ts";
import { runtimeOf } from "./runtime-env.ts";

/** The Python package that runs a job inside Ray; it is uploaded with each, so that nothing has to be installed. */
const pythonPackage = join(import.meta.dirname, "job/tiltyard");
/** In the job's working directory, which every node of the Ray gets. */
const keyFile = "api-key";
const idPattern = /^tiltyard-.+-(\d+)$/;

const states: Readonly<Record<JobDetails["status"], AttemptState>> = {
  PENDING: "starting",
  RUNNING: "running",
  SUCCEEDED: "ended",
  FAILED: "ended",
  STOPPED: "ended",
};

/** Where an attempt's job may come from and go to. */
export interface RayPlatformOptions {
  /** The Ray of now: another one after the first has died. */
  readonly ray: () => Promise<{ readonly dashboardUrl: string; readonly jobs: JobsApi }>;
  readonly catalogUrl: string;
  readonly leaseSeconds: number;
}

/** Runs attempts as jobs of one Ray, through its Jobs API. The name of a job is made from its attempt. */
export class RayPlatform implements Platform {
  readonly #options: RayPlatformOptions;

  constructor(options: RayPlatformOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly PlatformAttempt[]> {
    const { jobs } = await this.#options.ray();
    return (await jobs.list()).flatMap((details) => {
      const [, number] = idPattern.exec(details.submission_id ?? "") ?? [];
      const jobId = details.metadata?.tiltyard_job;
      if (number === undefined || jobId === undefined) return [];
      return [{ jobId, number: Number(number), state: states[details.status], message: firstLineOf(details) }];
    });
  }

  async start({ job, number, apiKey }: StartRequest): Promise<void> {
    const { env, headImage, workerImage } = runtimeOf(job.parameters.manifest);
    if (headImage !== undefined || workerImage !== undefined)
      throw new NeedsError("manifest: this Ray runs in no container, so that it cannot have another image");
    const { jobs } = await this.#options.ray();
    const { catalogUrl, leaseSeconds } = this.#options;
    const folder = mkdtempSync(join(tmpdir(), "tiltyard-job-"));
    try {
      cpSync(pythonPackage, join(folder, "tiltyard"), { recursive: true });
      // Variables of a job are in Ray's logs and dashboard.
      writeFileAtomic.sync(join(folder, keyFile), apiKey, { mode: 0o600 });
      await jobs.submit({
        entrypoint: entrypointOf(job.id, number, leaseSeconds),
        submissionId: submissionIdOf(job.id, number),
        workingDirectory: folder,
        runtimeEnv: {
          ...env,
          env_vars: { ...env.env_vars, TILTYARD_CATALOG_URL: catalogUrl, TILTYARD_API_KEY_FILE: keyFile },
        },
        metadata: { tiltyard_job: job.id },
      });
    } catch (error) {
      if (!(error instanceof JobError && error.message.includes("already exists"))) throw error;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async stop({ jobId, number }: Pick<PlatformAttempt, "jobId" | "number">): Promise<void> {
    try {
      await (await this.#options.ray()).jobs.stop(submissionIdOf(jobId, number));
    } catch (error) {
      if (!(error instanceof JobError && error.message.includes("does not exist"))) throw error;
    }
  }

  /** Ray forgets its jobs by itself; until then, `tiltyard ray job logs` shows them. */
  async forget(): Promise<void> {}

  async lastLines({ jobId, number }: PlatformAttempt): Promise<string> {
    try {
      return lastLinesOf(await (await this.#options.ray()).jobs.output(submissionIdOf(jobId, number)));
    } catch (error) {
      if (error instanceof JobError) return "";
      throw error;
    }
  }

  async describe(jobId: string, number: number): Promise<Readonly<Record<string, string>>> {
    const { dashboardUrl } = await this.#options.ray();
    return { ray_address: dashboardUrl, ray_submission_id: submissionIdOf(jobId, number) };
  }
}

/** Ray takes an id once, so that an attempt starts once however often it is submitted. */
function submissionIdOf(jobId: string, number: number): string {
  return `tiltyard-${bareIdOf(jobId)}-${number}`;
}

function firstLineOf({ message, status }: JobDetails): string | undefined {
  return status === "SUCCEEDED" ? undefined : (message?.split("\n")[0] ?? undefined);
}
