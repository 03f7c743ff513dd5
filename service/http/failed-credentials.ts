import { setTimeout as pause } from "node:timers/promises";
import { CatalogError } from "@tiltyard/protocol";
import { RateLimiterRes } from "rate-limiter-flexible";
import type { Store } from "../store/store.ts";

const minuteSeconds = 60;
/** How long the answer to one refused credential too many takes, and how many answers may take so long at once. */
const pauseMs = 1_000;
const pausedMax = 256;

/** Delays callers whose credentials are refused. A valid credential never comes here. */
export interface FailedCredentials {
  /**
   * Counts a credential that was refused.
   *
   * @param address Where it came from. Others may share it, so what counts against it is refusals alone.
   * @throws CatalogError The refusal, or Throttling, after a pause, when the address has had too many.
   */
  refuse(address: string, refusal: CatalogError): Promise<never>;
}

/**
 * @param createLimiter Counts the refusals.
 * @param perMinute How many refusals an address may have in a minute.
 */
export function createFailedCredentials(createLimiter: Store["createLimiter"], perMinute: number): FailedCredentials {
  const limiter = createLimiter({ points: perMinute, durationSeconds: minuteSeconds });
  let paused = 0;
  return {
    refuse: async (address, refusal) => {
      try {
        await limiter.consume(address);
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        if (paused < pausedMax) {
          paused += 1;
          await pause(pauseMs);
          paused -= 1;
        }
        throw new CatalogError(
          "Throttling",
          `${refusal.message}; and this address has sent too many such credentials`,
          {
            retryAfterSeconds: Math.max(1, Math.ceil(error.msBeforeNext / 1000)),
          },
        );
      }
      throw refusal;
    },
  };
}
