import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { JobDetails, JobsApi } from "@tiltyard/client";
import writeFileAtomic from "write-file-atomic";
import type { Runtime } from "./runtime-env.ts";

/** The Python package that runs a job inside Ray. It is uploaded with each process, so that no installation is needed. */
const pythonPackage = join(import.meta.dirname, "job/tiltyard");
/** The file with the key of an attempt. Ray shows the variables of a job in its logs and dashboard. */
export const keyFile = "api-key";
const argumentsFile = "attempt.json";
const idPrefix = "tiltyard-standby-";

/** A Ray that processes are submitted to. */
export interface SubmittedRay {
  readonly dashboardUrl: string;
  readonly jobs: JobsApi;
  /** Its folder on this machine; undefined for a Ray that another process started. */
  readonly folder?: string;
}

/**
 * A process on a Ray of this machine that has imported the packages of one environment and waits for one attempt. It
 * never receives a second one, so no job sees the memory or the key of another one.
 */
export class Standby {
  readonly submissionId = `${idPrefix}${randomUUID()}`;
  readonly ray: SubmittedRay;
  readonly env: Runtime["env"];
  readonly #folder: string;

  private constructor(ray: SubmittedRay, env: Runtime["env"], rayFolder: string) {
    [this.ray, this.env] = [ray, env];
    // Node creates it for this user only. It is deleted with the folder of its Ray at the latest.
    this.#folder = mkdtempSync(join(rayFolder, "standby-"));
  }

  /** Starts a process; undefined on a Ray that another process started. */
  static async start(ray: SubmittedRay, env: Runtime["env"], catalogUrl: string): Promise<Standby | undefined> {
    if (ray.folder === undefined) return undefined;
    const standby = new Standby(ray, env, ray.folder);
    try {
      await submit(ray, {
        entrypoint: `exec python -m tiltyard.job.standby '${standby.#folder}'`,
        submissionId: standby.submissionId,
        env,
        connection: { TILTYARD_CATALOG_URL: catalogUrl, TILTYARD_API_KEY_FILE: join(standby.#folder, keyFile) },
      });
    } catch (error) {
      standby.discard();
      throw error;
    }
    return standby;
  }

  /** Reports whether the process is on this Ray and has this environment. */
  fits(ray: SubmittedRay, env: Runtime["env"]): boolean {
    return ray.dashboardUrl === this.ray.dashboardUrl && isDeepStrictEqual(env, this.env);
  }

  async isAlive(): Promise<boolean> {
    const found = await this.ray.jobs.list();
    return found.some((each) => each.submission_id === this.submissionId && isOpen(each));
  }

  /**
   * Passes the attempt to the process. After an error, such as that of a full disk, the process exits without an attempt.
   *
   * @param args The arguments of its command.
   */
  assign(args: readonly string[], apiKey: string): void {
    try {
      writeFileAtomic.sync(join(this.#folder, keyFile), apiKey, { mode: 0o600 });
      writeFileAtomic.sync(join(this.#folder, argumentsFile), JSON.stringify(args), { mode: 0o600 });
    } catch (error) {
      this.discard();
      throw error;
    }
  }

  /** Deletes the folder with the key. A process that still waits then exits. */
  discard(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Reports whether a job of Ray is a process that waits or has waited for an attempt. */
export function isStandby({ submission_id: id }: JobDetails): boolean {
  return id?.startsWith(idPrefix) === true;
}

/** Reports whether a job of Ray has not ended. */
export function isOpen({ status }: JobDetails): boolean {
  return status === "PENDING" || status === "RUNNING";
}

export interface Submission {
  readonly entrypoint: string;
  readonly submissionId: string;
  readonly env: Runtime["env"];
  /** The variables of the connection to the catalog. */
  readonly connection: Readonly<Record<string, string>>;
  /** The key that every node of the Ray receives in a file. */
  readonly apiKey?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Submits a process with the Python package in its working directory. */
export async function submit({ jobs }: SubmittedRay, submission: Submission): Promise<void> {
  const { entrypoint, submissionId, env, connection, apiKey, metadata } = submission;
  const folder = mkdtempSync(join(tmpdir(), "tiltyard-job-"));
  try {
    // A failing disk ends the whole process in `cpSync`, which Node implements in C++.
    await cp(pythonPackage, join(folder, "tiltyard"), { recursive: true });
    if (apiKey !== undefined) writeFileAtomic.sync(join(folder, keyFile), apiKey, { mode: 0o600 });
    await jobs.submit({
      entrypoint,
      submissionId,
      workingDirectory: folder,
      runtimeEnv: { ...env, env_vars: { ...env.env_vars, ...connection } },
      ...(metadata !== undefined && { metadata }),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
