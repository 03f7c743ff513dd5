import { defaultDelimiter, parseIdentifier, problemOfIdentifier } from "@tiltyard/protocol";
import type { StartableJob } from "./jobs.ts";

/**
 * The state of an attempt on its platform. A queued attempt waits for its admission, which may last any time. A waiting
 * attempt has no resources yet. A starting attempt has them and installs its dependencies, such as packages.
 */
export type AttemptState = "queued" | "waiting" | "starting" | "running" | "ended";

/** An attempt on a platform. */
export interface PlatformAttempt {
  readonly jobId: string;
  readonly number: number;
  readonly state: AttemptState;
  /** The platform's reason for its end. */
  readonly message: string | undefined;
  /** Reports whether the platform failed, or its process was killed. An attempt that ended so before its start does not count. */
  readonly isLost?: boolean;
  /** The time of its end in milliseconds since 1970, if the platform keeps ended attempts. */
  readonly endedAtMillis?: number | undefined;
  /** The platform's reason for its wait; undefined if no missing resource is known. */
  readonly waitReason?: string | undefined;
}

export interface StartRequest {
  /** The job with the platform that the attempt was claimed for. */
  readonly job: StartableJob;
  readonly number: number;
  /** The API key of the job. */
  readonly apiKey: string;
}

/** The platform of attempts: a Ray of this machine, or RayJobs of Kubernetes. */
export interface Platform {
  /** Lists all attempts that were started here and are not forgotten yet. */
  list(): Promise<readonly PlatformAttempt[]>;
  /** Requires that the latest list includes the attempts of a job, if a platform has parts. @throws The error of its part. */
  requireListed?(jobId: string): void;
  /** Starts an attempt unless it exists. After any other error than NeedsError, the attempt may exist. @throws NeedsError */
  start(request: StartRequest): Promise<void>;
  /** Stops an attempt, which need not exist. */
  stop(attempt: Pick<PlatformAttempt, "jobId" | "number">): Promise<void>;
  /** Deletes the remains of an ended attempt of an ended job, if they occupy resources. */
  forget(attempt: PlatformAttempt): Promise<void>;
  /** Returns the last lines of its output; empty if they are unavailable. */
  lastLines(attempt: PlatformAttempt): Promise<string>;
  /** Returns the properties of the job that show users where an attempt runs. */
  describe(job: StartableJob, number: number): Promise<Readonly<Record<string, string>>>;
}

/**
 * Returns the part of a job's id that names its attempts on a platform. It is unique without the namespace, which may
 * contain any characters.
 */
export function bareIdOf(jobId: string): string {
  return parseIdentifier(jobId).at(-1) ?? "";
}

/** Reports whether a text of the platform, where others may create objects too, is the id of a job. */
export function isJobId(text: string | undefined): text is string {
  return text !== undefined && problemOfIdentifier(text.split(defaultDelimiter)) === undefined;
}

/** Returns the arguments of the command of an attempt. */
export function argumentsOf(jobId: string, number: number, leaseSeconds: number): string[] {
  return ["--attempt", `${number}`, "--lease-seconds", `${leaseSeconds}`, "--", jobId];
}

/** Returns the shell command of an attempt. The id must be quoted, because callers choose the names of namespaces in it. */
export function entrypointOf(jobId: string, number: number, leaseSeconds: number): string {
  const quoted = `'${jobId.replaceAll("'", `'\\''`)}'`;
  return ["python -m tiltyard.job", ...argumentsOf(jobId, number, leaseSeconds).slice(0, -1), quoted].join(" ");
}

/** An error about resources that a job needs and the platform will never have, as a sentence for the job's principal. */
export class NeedsError extends Error {
  override readonly name = "NeedsError";
}
