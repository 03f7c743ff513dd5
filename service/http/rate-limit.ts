import { CatalogError } from "@tiltyard/protocol";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

/** Counts a request of a principal. @throws CatalogError Throttling when it has had too many in this second. */
export type RateLimit = (principal: string) => Promise<void>;

/** @param requestsPerSecond For one principal; undefined is no limit. */
export function createRateLimit(requestsPerSecond: number | undefined): RateLimit {
  if (requestsPerSecond === undefined) return async () => {};
  const limiter = new RateLimiterMemory({ points: requestsPerSecond, duration: 1 });
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
