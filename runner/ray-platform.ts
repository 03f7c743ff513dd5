import { mkdtempSync, rmSync } from "node:fs";
import { cp } from "node:fs/promises";
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

/** The Python package that runs a job inside Ray. It is uploaded with each job, so that no installation is needed. */
const pythonPackage = join(import.meta.dirname, "job/tiltyard");
/** The file in the job's working directory, which every node of the Ray receives. */
const keyFile = "api-key";
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
  readonly ray: () => Promise<{ readonly dashboardUrl: string; readonly jobs: JobsApi }>;
  readonly catalogUrl: string;
  readonly leaseSeconds: number;
}

/** Runs attempts as jobs of one Ray through its Jobs API. The name of a job is derived from its attempt. */
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
    const { manifest, cluster, cluster_definition: definition } = job.parameters;
    if (cluster !== undefined && definition === undefined)
      throw new NeedsError(
        `cluster: ${JSON.stringify(cluster)} is unknown: this runner has one Ray. Leave cluster out`,
      );
    const { env, headImage, workerImage } = runtimeOf(manifest);
    if (headImage !== undefined || workerImage !== undefined)
      throw new NeedsError("manifest: this Ray does not run in a container, so it cannot use another image");
    const { jobs } = await this.#options.ray();
    const { catalogUrl, leaseSeconds } = this.#options;
    const folder = mkdtempSync(join(tmpdir(), "tiltyard-job-"));
    try {
      // A failing disk ends the whole process in `cpSync`, which Node implements in C++.
      await cp(pythonPackage, join(folder, "tiltyard"), { recursive: true });
      // Ray shows the variables of a job in its logs and dashboard, so the key is in a file.
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

  /** Does nothing, because Ray deletes its jobs itself; until then, `tiltyard ray job logs` shows them. */
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

/**
 * Returns the id of an attempt's job. Ray accepts each id once, so an attempt starts only once even if it is submitted
 * repeatedly.
 */
function submissionIdOf(jobId: string, number: number): string {
  return `tiltyard-${bareIdOf(jobId)}-${number}`;
}

function firstLineOf({ message, status }: JobDetails): string | undefined {
  return status === "SUCCEEDED" ? undefined : (message?.split("\n")[0] ?? undefined);
}
