import { setTimeout as sleep } from "node:timers/promises";
import {
  CatalogConnectionError,
  CatalogRequestError,
  CatalogResponseError,
  JobError,
  KubernetesError,
  LocalRayError,
} from "@tiltyard/client";
import { backoffMs, codeOf, isTransientStatus } from "@tiltyard/protocol";

const backoff = { firstMs: 2_000, mostMs: 30_000 };

/** The time in milliseconds between two calls of `wake`. */
const wakeMs = 200;

interface RepeatOptions {
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  readonly log: (text: string) => void;
  /** Is called repeatedly during a pause after success, and ends the pause by returning true. */
  readonly wake?: () => Promise<boolean>;
}

/**
 * Repeats work until the signal. Transient failures are reported and retried with backoff. Work that is in progress at
 * the signal is abandoned, because a request of it may wait for minutes.
 *
 * @throws Permanent failures.
 */
export async function repeat(work: () => Promise<void>, options: RepeatOptions): Promise<void> {
  const { pauseMs, signal, log, wake } = options;
  const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});
  for (let failures = 0; !signal.aborted; ) {
    try {
      await Promise.race([work(), aborted]);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (!mayPass(error)) throw error;
      log(error.message);
      failures++;
    }
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

/** The codes of a full disk or quota. */
const noSpace: readonly (string | undefined)[] = ["ENOSPC", "EDQUOT"];

/** Reports whether a retry of the whole work may succeed. */
function mayPass(error: unknown): error is Error {
  if (error instanceof CatalogRequestError) return isTransientStatus(error.status);
  return (
    error instanceof CatalogConnectionError ||
    // A gateway in front of the catalog may answer with a page of its own for a while.
    error instanceof CatalogResponseError ||
    error instanceof JobError ||
    error instanceof LocalRayError ||
    error instanceof KubernetesError ||
    noSpace.includes(codeOf(error))
  );
}
