import { onNpmExit } from "@tiltyard/protocol/parent";
import { failuresOf, reportOf } from "./error-message.ts";
import { exitCodes } from "./exit-codes.ts";
import { log } from "./output.ts";

/** The advice about a Ray cluster that an interrupted command did not delete. */
export const clusterLeftOver = "delete the rest with: tiltyard cluster reap";

/**
 * Runs work that stops and cleans up after the first SIGINT or SIGTERM, or when the reader of its output closes the
 * pipe. A second signal exits immediately. Interrupted work has the exit code of interruptions; other errors are
 * printed.
 *
 * @param leftOver The advice about possible orphans after a failed cleanup.
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<void>, leftOver?: string): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const hint = leftOver === undefined ? "" : `; ${leftOver}`;
  const interrupt = () => {
    if (signal.aborted) {
      log(`\nexited at once${hint}`);
      process.exit(exitCodes.interrupted);
    }
    log("\nstopping; interrupt again to exit at once");
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
    for (const failure of failures) log(`tiltyard: ${reportOf(failure)}${hint}`);
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    process.stdout.off("error", stop);
  }
  if (signal.aborted) process.exitCode = exitCodes.interrupted;
}
