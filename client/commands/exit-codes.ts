/** The exit codes of `tiltyard`. docs/reference/cli.md lists them. */
export const exitCodes = {
  ok: 0,
  /** The command failed. */
  failed: 1,
  /** The command line, a file or a setting is invalid. */
  usage: 2,
  /** The job ran and failed. */
  jobFailed: 3,
  /** The job was stopped. */
  jobStopped: 4,
  /** The doctor found a failure. */
  unhealthy: 5,
  /** The command was interrupted; the code is that of shells for SIGINT. */
  interrupted: 130,
} as const;

/** An error of an invalid request of the user. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
