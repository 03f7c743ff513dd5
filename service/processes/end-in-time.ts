import { flushLog, type Log } from "../log.ts";

/** How long a service may take to end once it is told to stop. Kubernetes kills it after 35 s. */
export const endsWithinMs = 32_000;
/** How long its log may take then. */
const flushesWithinMs = 2_000;
export const lateToEnd = "the service did not end in time, and is killed; what it acknowledged is durable";

/** Has this process end in time, whatever it waits for. */
export function endInTime(log: Log): void {
  const end = async () => {
    log.error(lateToEnd);
    killSoon();
    await flushLog(log);
    process.exit(1);
  };
  setTimeout(end, endsWithinMs).unref();
}

/** Kills this process unless it ends by itself soon: standard output without a reader keeps it, also from an exit. */
export function killSoon(): void {
  setTimeout(() => process.kill(process.pid, "SIGKILL"), flushesWithinMs).unref();
}
