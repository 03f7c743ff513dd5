import { onNpmExit } from "@tiltyard/protocol/parent";
import { failuresOf, reportOf } from "./error-message.ts";
import { exitCodes } from "./exit-codes.ts";

/** What deletes a Ray cluster that an interrupted command left. */
export const clusterLeftOver = "what is left over is deleted by: tiltyard cluster reap";

/**
 * Runs work that is asked to stop and clean up by the first SIGINT or SIGTERM, and when the reader
 * of its output is gone; a second signal ends the process at once. Work that was interrupted
 * ends with the exit code of that. Any other failure is printed.
 *
 * @param leftOver Advice about possible orphans after a failed clean-up.
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<void>, leftOver?: string): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const hint = leftOver === undefined ? "" : `; ${leftOver}`;
  const interrupt = () => {
    if (signal.aborted) {
      process.stderr.write(`\nexited at once${hint}\n`);
      process.exit(exitCodes.interrupted);
    }
    process.stderr.write("\nstopping; interrupt again to exit at once\n");
    controller.abort();
  };
  const stop = () => controller.abort();
  process.on("SIGINT", interrupt).on("SIGTERM", interrupt);
  process.stdout.on("error", stop);
  using _ = onNpmExit(stop);
  try {
    await work(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    const failures = failuresOf(error).filter((each) => !(each instanceof Error && each.name === "AbortError"));
    for (const failure of failures) process.stderr.write(`tiltyard: ${reportOf(failure)}${hint}\n`);
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    process.stdout.off("error", stop);
  }
  if (signal.aborted) process.exitCode = exitCodes.interrupted;
}
