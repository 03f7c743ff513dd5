import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs, formatError } from "@tiltyard/protocol";
import { isAboutRunner } from "./failure.ts";

/** The default limits of the delay after a failure. */
export const backoff = { firstMs: 2_000, mostMs: 30_000 };

/** The time in milliseconds between two calls of `wake`. */
const wakeMs = 200;

interface RepeatOptions {
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  readonly log: (text: string) => void;
  /** The limits of the delay after a failure. */
  readonly retry?: typeof backoff;
  /** Is called after each pass, also after one that failed. */
  readonly passed?: () => void;
  /** Is called repeatedly during a pause after success, and ends the pause by returning true. */
  readonly wake?: () => Promise<boolean>;
}

/**
 * Repeats work until the signal. Failures are retried with backoff, and the same one is reported once until the work
 * succeeds. Work that is in progress at the signal is abandoned, because a request of it may wait for minutes.
 *
 * @throws CatalogRequestError about the runner itself.
 */
export async function repeat(work: () => Promise<void>, options: RepeatOptions): Promise<void> {
  const { pauseMs, signal, log, retry = backoff, passed, wake } = options;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});
  let reported = "";
  let hasSucceeded = false;
  for (let failures = 0; !signal.aborted; ) {
    try {
      await unlessAborted(work(), signal);
      if (failures > 0 && !signal.aborted)
        log(`recovered after ${failures} ${failures === 1 ? "failure" : "failures"}`);
      [failures, reported, hasSucceeded] = [0, "", true];
    } catch (error) {
      if (signal.aborted) return;
      if (isAboutRunner(error, hasSucceeded)) throw error;
      const failure = formatError(error);
      if (failure !== reported) log(failure);
      reported = failure;
      failures++;
    }
    passed?.();
    if (failures > 0) await pause(backoffMs(failures - 1, retry));
    else if (wake === undefined) await pause(pauseMs);
    else {
      const until = performance.now() + pauseMs;
      // The work itself reports an error, if it has the same one.
      const isWoken = () => unlessAborted(wake(), signal).catch(() => false);
      do await pause(wakeMs);
      while (!signal.aborted && performance.now() < until && !(await isWoken()));
    }
  }
}

/**
 * Awaits work until the signal. Each call removes its listener, because a promise that many races share would keep all
 * of their results.
 *
 * @returns undefined after the signal.
 */
async function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const onAbort = () => resolve(undefined);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
