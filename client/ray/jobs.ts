import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Dashboard, JobError } from "./dashboard.ts";
import { packWorkingDirectory } from "./working-dir.ts";

/** Ray's statuses of a job. */
const jobStatuses = ["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"] as const;
export type JobStatus = (typeof jobStatuses)[number];

const JobDetails = z.object({
  submission_id: z.string().nullable(),
  job_id: z.string().nullish(),
  status: z.enum(jobStatuses),
  entrypoint: z.string(),
  message: z.string().nullish(),
  /** The kind of its failure, and the exit code of its process, negative for a signal. */
  error_type: z.string().nullish(),
  driver_exit_code: z.int().nullish(),
  start_time: z.number().nullish(),
  end_time: z.number().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
});
/** Ray's description of a job. Times are milliseconds since 1970. */
export type JobDetails = z.infer<typeof JobDetails>;

const JobOutput = z.object({ logs: z.string().nullable() });

export interface JobRequest {
  /** The shell command, which runs on the head. */
  readonly entrypoint: string;
  /** The id of the job on this Ray, which can be used only once; random when absent. */
  readonly submissionId?: string;
  /** A folder that is uploaded and becomes the working directory of the command. */
  readonly workingDirectory?: string;
  /** Ray's runtime environment: `pip`, `env_vars`, ... */
  readonly runtimeEnv?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** The CPUs and GPUs that the command itself needs. It then runs on a worker. */
  readonly entrypointNumCpus?: number;
  readonly entrypointNumGpus?: number;
}

const pollMs = 1_000;

/** The client of Ray's Jobs API. */
export class JobsApi {
  readonly #dashboard: Dashboard;

  /**
   * @param url The URL of the dashboard, such as `http://127.0.0.1:8265`.
   * @param token The token of a Ray that requires one.
   */
  constructor(url: string, token?: string) {
    this.#dashboard = new Dashboard(url, token);
  }

  /** Submits a job. @throws JobError */
  async submit(request: JobRequest): Promise<Job> {
    const runtimeEnv = { ...request.runtimeEnv };
    if (request.workingDirectory !== undefined) runtimeEnv.working_dir = await this.#upload(request.workingDirectory);
    // Ray accepts each id only once, so the request is idempotent with an id that is chosen here.
    const id = request.submissionId ?? `raysubmit_${randomBytes(8).toString("hex")}`;
    try {
      await this.#dashboard.request("POST", "/api/jobs/", {
        entrypoint: request.entrypoint,
        runtime_env: runtimeEnv,
        submission_id: id,
        ...(request.metadata !== undefined && { metadata: request.metadata }),
        ...(request.entrypointNumCpus !== undefined && { entrypoint_num_cpus: request.entrypointNumCpus }),
        ...(request.entrypointNumGpus !== undefined && { entrypoint_num_gpus: request.entrypointNumGpus }),
      });
    } catch (error) {
      const isOurs = request.submissionId === undefined && error instanceof JobError && isTaken(error);
      if (!isOurs) throw error;
    }
    return new Job(this, id);
  }

  /** Returns the job with an id. Its first call fails if no such job exists. */
  get(id: string): Job {
    return new Job(this, id);
  }

  /** Lists all jobs. Other clients of Ray may have submitted jobs that this one cannot read. @throws JobError */
  async list(): Promise<readonly JobDetails[]> {
    const jobs = await this.#dashboard.read("/api/jobs/", z.array(z.unknown()));
    return jobs.flatMap((job) => {
      const { data } = JobDetails.safeParse(job);
      return data === undefined ? [] : [data];
    });
  }

  /** Returns Ray's description of a job. @throws JobError */
  async details(id: string): Promise<JobDetails> {
    return this.#dashboard.read(pathOf(id), JobDetails);
  }

  /** Returns the output of a job so far. @throws JobError also for an output of more bytes than the maximum. */
  async output(id: string, bytesMax?: number): Promise<string> {
    return (await this.#dashboard.read(`${pathOf(id)}/logs`, JobOutput, bytesMax)).logs ?? "";
  }

  /** Streams the output of a job from its beginning until the job or the connection ends. */
  streamOutput(id: string, signal?: AbortSignal): AsyncGenerator<string, void> {
    return this.#dashboard.messages(`${pathOf(id)}/logs/tail`, signal);
  }

  /** Requests that a job stops. @throws JobError */
  async stop(id: string): Promise<void> {
    await this.#dashboard.request("POST", `${pathOf(id)}/stop`);
  }

  /** Deletes an ended job. @throws JobError */
  async delete(id: string): Promise<void> {
    await this.#dashboard.request("DELETE", pathOf(id));
  }

  async #upload(folder: string): Promise<string> {
    const { uri, content } = packWorkingDirectory(folder);
    const path = `/api/packages/${uri.replace("://", "/")}`;
    if (!(await this.#exists(path))) await this.#dashboard.request("PUT", path, content);
    return uri;
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.#dashboard.request("GET", path);
      return true;
    } catch (error) {
      if (error instanceof JobError && error.status === 404) return false;
      throw error;
    }
  }
}

function pathOf(id: string): string {
  return `/api/jobs/${encodeURIComponent(id)}`;
}

function isTaken({ message }: JobError): boolean {
  return /submission_id \S+ already exists/.test(message);
}

/** A submitted job. */
export class Job {
  readonly id: string;
  readonly #api: JobsApi;

  constructor(api: JobsApi, id: string) {
    this.#api = api;
    this.id = id;
  }

  /** Returns Ray's description of the job. @throws JobError */
  details(): Promise<JobDetails> {
    return this.#api.details(this.id);
  }

  /** Returns the status of the job. @throws JobError */
  async status(): Promise<JobStatus> {
    return (await this.details()).status;
  }

  /** Requests that the job stops. @throws JobError */
  stop(): Promise<void> {
    return this.#api.stop(this.id);
  }

  /** Waits for the end of the job. @throws JobError */
  async wait({ signal }: { readonly signal?: AbortSignal } = {}): Promise<JobDetails> {
    for (;;) {
      const details = await this.details();
      if (hasEnded(details.status)) return details;
      await sleep(pollMs, undefined, { signal });
    }
  }

  /**
   * Streams the output of the job by lines until the job ends. Broken connections neither lose nor repeat lines.
   *
   * @throws JobError
   */
  async *logs({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<string, void> {
    const lines = new NewLines();
    for (;;) {
      lines.restart();
      for await (const text of this.#api.streamOutput(this.id, signal)) yield* lines.add(text);
      // The status is read before the output. Output in between belongs to the next iteration.
      const ended = hasEnded(await this.status());
      lines.restart();
      yield* lines.add(await this.#api.output(this.id));
      if (ended) return yield* lines.end();
      await sleep(pollMs, undefined, { signal });
    }
  }
}

/** Returns each line of an output once, although the output is read several times from its beginning. */
class NewLines {
  /** The number of characters since the last restart. */
  #position = 0;
  /** The number of characters that were ever added. */
  #printed = 0;
  /** The incomplete last line so far. */
  #begun = "";

  /** Continues with the beginning of the output. */
  restart(): void {
    this.#position = 0;
  }

  /** Yields the lines that a part of the output completes for the first time. */
  *add(text: string): Generator<string, void> {
    const fresh = text.slice(Math.max(this.#printed - this.#position, 0));
    this.#position += text.length;
    this.#printed = Math.max(this.#printed, this.#position);
    const lines = (this.#begun + fresh).split("\n");
    this.#begun = lines.pop() ?? "";
    yield* lines;
  }

  /** Yields the last line if it has no line break. */
  *end(): Generator<string, void> {
    if (this.#begun !== "") yield this.#begun;
  }
}

export function hasEnded(status: JobStatus): boolean {
  return status === "SUCCEEDED" || status === "FAILED" || status === "STOPPED";
}
