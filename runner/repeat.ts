import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs, formatError } from "@tiltyard/protocol";
import { isAboutRunner } from "./failure.ts";

/** The limits of the delay after an error. */
export const backoff = { firstMs: 2_000, mostMs: 30_000 };

/** The time in milliseconds between two calls of `wake`. */
const wakeMs = 200;

interface RepeatOptions {
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  readonly log: (text: string) => void;
  /** Is called after each pass, also after one that failed. */
  readonly passed?: () => void;
  /** Is called repeatedly during a pause after success, and ends the pause by returning true. */
  readonly wake?: () => Promise<boolean>;
}

/**
 * Repeats work until the signal. Failures are reported and retried with backoff. Work that is in progress at the signal is
 * abandoned, because a request of it may wait for minutes.
 *
 * @throws CatalogRequestError about the runner itself.
 */
export async function repeat(work: () => Promise<void>, options: RepeatOptions): Promise<void> {
  const { pauseMs, signal, log, passed, wake } = options;
  const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});
  for (let failures = 0; !signal.aborted; ) {
    try {
      await Promise.race([work(), aborted]);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (isAboutRunner(error)) throw error;
      log(formatError(error));
      failures++;
    }
    passed?.();
    if (failures > 0) await pause(backoffMs(failures - 1, backoff));
    else if (wake === undefined) await pause(pauseMs);
    else {
      const until = performance.now() + pauseMs;
      // The work itself reports an error, if it has the same one.
      const isWoken = () => Promise.race([wake().catch(() => false), aborted]);
      do await pause(wakeMs);
      while (!signal.aborted && performance.now() < until && !(await isWoken()));
    }
  }
}
