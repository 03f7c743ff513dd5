import { exitCodes } from "./exit-codes.ts";

/** What the reaper is for. */
export const clusterLeftOver = "what is left over is deleted by: tiltyard cluster reap";

/** The first SIGINT or SIGTERM asks to stop and clean up, the second ends the process at once. */
export function interruptible(leftOver?: string): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) {
      process.stderr.write(`\nleft at once${leftOver === undefined ? "" : `; ${leftOver}`}\n`);
      process.exit(exitCodes.interrupted);
    }
    process.stderr.write("\nstopping; once more to leave at once\n");
    controller.abort();
  };
  process.on("SIGINT", interrupt).on("SIGTERM", interrupt);
  return {
    signal: controller.signal,
    end: () => process.off("SIGINT", interrupt).off("SIGTERM", interrupt),
  };
}
