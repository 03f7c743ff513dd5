import { setTimeout as sleep } from "node:timers/promises";
import { type Dispatcher, request } from "undici";
import { z } from "zod";
import { packWorkingDirectory } from "./working-dir.ts";

/** Ray's words for how a job is. */
const jobStatuses = ["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"] as const;
export type JobStatus = (typeof jobStatuses)[number];

const JobDetails = z.object({
  submission_id: z.string().nullable(),
  status: z.enum(jobStatuses),
  entrypoint: z.string(),
  message: z.string().nullish(),
  start_time: z.number().nullish(),
  end_time: z.number().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
});
/** A job as Ray tells of it; times are milliseconds since 1970. */
export type JobDetails = z.infer<typeof JobDetails>;

export interface JobRequest {
  /** A shell command, which runs on the head. */
  readonly entrypoint: string;
  /** Chosen by Ray when absent. */
  readonly submissionId?: string;
  /** A folder that is uploaded and in which the command runs. */
  readonly workingDirectory?: string;
  /** Ray's runtime environment: `pip`, `env_vars`, ... */
  readonly runtimeEnv?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** CPUs and GPUs of a worker that the command itself needs; it runs there then. */
  readonly entrypointNumCpus?: number;
  readonly entrypointNumGpus?: number;
}

type Method = "GET" | "POST" | "PUT";

/** Ray refused, or gave no answer. */
export class JobError extends Error {
  override readonly name = "JobError";
}

const pollMs = 1_000;
const requestTimeoutMs = 30_000;
/** How often a call that is safe to repeat is tried again while a forwarding or the dashboard comes back. */
const retries = 10;

/** Ray's Jobs API on a dashboard. */
export class JobsApi {
  readonly #url: string;
  readonly #token: string | undefined;

  /**
   * @param url Of the dashboard, e.g. `http://127.0.0.1:8265`.
   * @param token Of a Ray that wants one.
   */
  constructor(url: string, token?: string) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
  }

  /** @throws JobError */
  async submit(request: JobRequest): Promise<Job> {
    const runtimeEnv = { ...request.runtimeEnv };
    if (request.workingDirectory !== undefined) runtimeEnv.working_dir = await this.#upload(request.workingDirectory);
    const answer = await this.#request("POST", "/api/jobs/", {
      entrypoint: request.entrypoint,
      runtime_env: runtimeEnv,
      ...(request.submissionId !== undefined && { submission_id: request.submissionId }),
      ...(request.metadata !== undefined && { metadata: request.metadata }),
      ...(request.entrypointNumCpus !== undefined && { entrypoint_num_cpus: request.entrypointNumCpus }),
      ...(request.entrypointNumGpus !== undefined && { entrypoint_num_gpus: request.entrypointNumGpus }),
    });
    const { submission_id } = z.object({ submission_id: z.string() }).parse(answer);
    return new Job(this, submission_id);
  }

  /** The job with an id; whether there is one shows with its first call. */
  get(id: string): Job {
    return new Job(this, id);
  }

  /** @throws JobError */
  async list(): Promise<readonly JobDetails[]> {
    const answer = await this.#request("GET", "/api/jobs/");
    return z.array(JobDetails).parse(answer);
  }

  /** @throws JobError */
  async details(id: string): Promise<JobDetails> {
    return JobDetails.parse(await this.#request("GET", `/api/jobs/${encodeURIComponent(id)}`));
  }

  /** All that the job has printed so far. @throws JobError */
  async output(id: string): Promise<string> {
    const answer = await this.#request("GET", `/api/jobs/${encodeURIComponent(id)}/logs`);
    return z.object({ logs: z.string().nullable() }).parse(answer).logs ?? "";
  }

  /** Asks the job to stop. @throws JobError */
  async stop(id: string): Promise<void> {
    await this.#request("POST", `/api/jobs/${encodeURIComponent(id)}/stop`);
  }

  async #upload(folder: string): Promise<string> {
    const { uri, content } = packWorkingDirectory(folder);
    const path = `/api/packages/${uri.replace("://", "/")}`;
    if (!(await this.#isThere(path))) await this.#request("PUT", path, content);
    return uri;
  }

  async #isThere(path: string): Promise<boolean> {
    const { statusCode, body } = await this.#send("GET", path);
    await body.dump();
    return statusCode === 200;
  }

  /** @returns The JSON of the answer; undefined when there is none. */
  async #request(method: Method, path: string, content?: object): Promise<unknown> {
    const { statusCode, body } = await this.#send(method, path, content);
    const text = (await body.text()).trim();
    if (statusCode < 300) return text === "" ? undefined : parseJson(text);
    if (statusCode === 401 || statusCode === 403)
      throw new JobError(`Ray wants a token: ${text}; give it in RAY_AUTH_TOKEN, or by the parameter auth: token`);
    throw new JobError(`Ray: ${method} ${path}: ${reasonIn(text) || `HTTP ${statusCode}`}`);
  }

  /** Not by `fetch`: Ray takes what that sends for a browser's, and refuses to change anything for one. */
  async #send(method: Method, path: string, content?: object): Promise<Dispatcher.ResponseData> {
    const isBytes = content instanceof Uint8Array;
    for (let attempt = 0; ; attempt++) {
      try {
        return await request(`${this.#url}${path}`, {
          method,
          headers: {
            ...(content && !isBytes && { "content-type": "application/json" }),
            ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
          },
          ...(content && { body: isBytes ? content : JSON.stringify(content) }),
          signal: AbortSignal.timeout(requestTimeoutMs),
        });
      } catch (error) {
        // A job that was submitted twice would run twice.
        if (method === "POST" || attempt === retries)
          throw new JobError(`there is no answer from Ray's dashboard at ${this.#url}`, { cause: error });
        await sleep(Math.min(100 * 2 ** attempt, 5_000));
      }
    }
  }
}

/** Ray answers with the whole trace of its own failure: what it was is where the last error begins. */
function reasonIn(text: string): string {
  const lines = text.split("\n");
  return lines.findLast((line) => /^\w*(Error|Exception): /.test(line)) ?? lines.at(-1) ?? "";
}

/** Some answers are a word and no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A job that was submitted. */
export class Job {
  readonly id: string;
  readonly #api: JobsApi;

  constructor(api: JobsApi, id: string) {
    this.#api = api;
    this.id = id;
  }

  /** @throws JobError */
  details(): Promise<JobDetails> {
    return this.#api.details(this.id);
  }

  /** @throws JobError */
  async status(): Promise<JobStatus> {
    return (await this.details()).status;
  }

  /** @throws JobError */
  stop(): Promise<void> {
    return this.#api.stop(this.id);
  }

  /** Waits until the job has ended. @throws JobError */
  async wait({ signal }: { readonly signal?: AbortSignal } = {}): Promise<JobDetails> {
    for (;;) {
      const details = await this.details();
      if (hasEnded(details.status)) return details;
      await sleep(pollMs, undefined, { signal });
    }
  }

  /**
   * What the job prints, line by line, until it has ended. A connection that breaks loses
   * nothing and repeats nothing.
   *
   * @throws JobError
   */
  async *logs({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<string, void> {
    let told = 0;
    for (;;) {
      // First how it is, then what it printed: what is printed between belongs to the next time.
      const ended = hasEnded(await this.status());
      const output = await this.#api.output(this.id);
      const end = ended ? output.length : output.lastIndexOf("\n") + 1;
      const fresh = output.slice(told, end);
      told = Math.max(told, end);
      if (fresh !== "") yield* fresh.replace(/\n$/, "").split("\n");
      if (ended) return;
      await sleep(pollMs, undefined, { signal });
    }
  }
}

export function hasEnded(status: JobStatus): boolean {
  return status === "SUCCEEDED" || status === "FAILED" || status === "STOPPED";
}
