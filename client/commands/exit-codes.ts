/** What `tiltyard` tells scripts by its exit code; docs/reference/cli.md lists them. */
export const exitCodes = {
  ok: 0,
  /** Something did not work. */
  failed: 1,
  /** The command line, a file or a setting is not valid. */
  usage: 2,
  /** The job ran and failed. */
  jobFailed: 3,
  /** The job was stopped. */
  jobStopped: 4,
  /** The doctor found something broken. */
  unhealthy: 5,
  /** As shells have it for SIGINT. */
  interrupted: 130,
} as const;

/** What was asked for is not valid. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
