import { parseIdentifier } from "@tiltyard/protocol";
import type { OpenJob } from "./jobs.ts";

/**
 * How an attempt is where it runs. One in a queue is not let begin yet, which may take any time; one that waits has no
 * room yet; one that starts has, and gets what it needs, as packages.
 */
export type AttemptState = "queued" | "waiting" | "starting" | "running" | "ended";

/** An attempt as the platform knows it. */
export interface PlatformAttempt {
  readonly jobId: string;
  readonly number: number;
  readonly state: AttemptState;
  /** Why it ended, in the platform's words. */
  readonly message: string | undefined;
  /** What it waits for, in the platform's words; undefined when nothing is known to be missing. */
  readonly lack?: string | undefined;
}

export interface StartRequest {
  readonly job: OpenJob;
  readonly number: number;
  /** Of the job alone. */
  readonly apiKey: string;
}

/** Where jobs run: a Ray of this machine, or RayJobs of Kubernetes. */
export interface Platform {
  /** All attempts that were started here and are not forgotten yet. */
  list(): Promise<readonly PlatformAttempt[]>;
  /** Starts an attempt; one that is there already is left alone. After an error it may be there, but for NeedsError. @throws NeedsError */
  start(request: StartRequest): Promise<void>;
  /** Ends an attempt that may be there. */
  stop(attempt: Pick<PlatformAttempt, "jobId" | "number">): Promise<void>;
  /** Takes away what is left of an attempt that has ended and of a job that has, where that costs something. */
  forget(attempt: PlatformAttempt): Promise<void>;
  /** The last lines that it printed; empty when that cannot be had. */
  lastLines(attempt: PlatformAttempt): Promise<string>;
  /** What users see of an attempt in the job's properties: where it runs. */
  describe(jobId: string, number: number): Promise<Readonly<Record<string, string>>>;
}

/** What of a job's id names its attempts on a platform: ids are unique without their namespaces, which may have any characters. */
export function bareIdOf(jobId: string): string {
  return parseIdentifier(jobId).at(-1) ?? "";
}

/** The command of an attempt, which Ray gives to a shell: in the id, names of namespaces are the callers'. */
export function entrypointOf(jobId: string, number: number, leaseSeconds: number): string {
  const quoted = `'${jobId.replaceAll("'", `'\\''`)}'`;
  return `python -m tiltyard.job --attempt ${number} --lease-seconds ${leaseSeconds} -- ${quoted}`;
}

const logLines = 40;
const logLengthMax = 4_000;

/** The end of what was printed, as much of it as a job tells. */
export function lastLinesOf(output: string): string {
  return output.trimEnd().split("\n").slice(-logLines).join("\n").slice(-logLengthMax);
}

/** What a job needs and the platform will never have: a sentence for the job's principal. */
export class NeedsError extends Error {
  override readonly name = "NeedsError";
}
