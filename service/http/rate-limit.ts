import { CatalogError } from "@tiltyard/protocol";
import { RateLimiterRes } from "rate-limiter-flexible";
import type { Store } from "../store/store.ts";

/** Counts a request of a principal. @throws CatalogError Throttling when it has had too many in this second. */
export type RateLimit = (principal: string) => Promise<void>;

/**
 * @param createLimiter Counts the requests.
 * @param requestsPerSecond For one principal; undefined is no limit.
 */
export function createRateLimit(
  createLimiter: Store["createLimiter"],
  requestsPerSecond: number | undefined,
): RateLimit {
  if (requestsPerSecond === undefined) return async () => {};
  const limiter = createLimiter({ points: requestsPerSecond, durationSeconds: 1 });
  return async (principal) => {
    try {
      await limiter.consume(principal);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      throw new CatalogError("Throttling", `${principal} may send ${requestsPerSecond} requests a second`, {
        retryAfterSeconds: Math.max(1, Math.ceil(error.msBeforeNext / 1000)),
      });
    }
  };
}
