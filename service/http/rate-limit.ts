import { CatalogError } from "@tiltyard/protocol";
import { RateLimiterRes } from "rate-limiter-flexible";
import type { Limiter } from "../store/store.ts";

/** Counts a call for a key. @throws CatalogError Throttling with the problem if the key has exceeded its limit. */
export async function countCall(limiter: Limiter, key: string, problem: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const retryAfterSeconds = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
    throw new CatalogError("Throttling", problem, { retryAfterSeconds });
  }
}
