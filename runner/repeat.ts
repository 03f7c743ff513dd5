import { setTimeout as sleep } from "node:timers/promises";
import {
  CatalogConnectionError,
  CatalogRequestError,
  JobError,
  KubernetesError,
  LocalRayError,
} from "@tiltyard/client";
import { backoffMs, isTransientStatus } from "@tiltyard/protocol";

const backoff = { firstMs: 2_000, mostMs: 30_000 };

/**
 * Repeats work until the signal. Transient failures are reported and retried with backoff. Work that is in progress at
 * the signal is abandoned, because a request of it may wait for minutes.
 *
 * @throws Permanent failures.
 */
export async function repeat(
  work: () => Promise<void>,
  options: { readonly pauseMs: number; readonly signal: AbortSignal; readonly tell: (text: string) => void },
): Promise<void> {
  const { pauseMs, signal, tell } = options;
  const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  for (let failures = 0; !signal.aborted; ) {
    try {
      await Promise.race([work(), aborted]);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (!mayPass(error)) throw error;
      tell(error.message);
      failures++;
    }
    await sleep(failures === 0 ? pauseMs : backoffMs(failures - 1, backoff), undefined, { signal }).catch(() => {});
  }
}

/** Reports whether a retry of the whole work may succeed. */
function mayPass(error: unknown): error is Error {
  if (error instanceof CatalogRequestError) return isTransientStatus(error.status);
  return (
    error instanceof CatalogConnectionError ||
    error instanceof JobError ||
    error instanceof LocalRayError ||
    error instanceof KubernetesError
  );
}
