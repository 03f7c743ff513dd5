import { CatalogError } from "@tiltyard/protocol";
import { RateLimiterRes } from "rate-limiter-flexible";
import type { Principal } from "../auth/authenticator.ts";
import type { Limiter, Store } from "../store/store.ts";

const minuteSeconds = 60;

/** Counts a request. @throws CatalogError Throttling if its principal sent too many within a second. */
export type RateLimit = (principal: Principal) => Promise<void>;

export function createRateLimit(createLimiter: Store["createLimiter"], requestsPerSecond: number): RateLimit {
  const limiter = createLimiter({ points: requestsPerSecond, durationSeconds: 1 });
  return ({ name }) => consume(limiter, name, `${name} may send ${requestsPerSecond} requests a second`);
}

/** Counts a rejected credential. @throws CatalogError Throttling if its address sent too many within a minute. */
export type FailedCredentials = (address: string, refusal: CatalogError) => Promise<void>;

/** Limits rejected credentials. Valid ones do not count, so that callers that share an address cannot lock each other out. */
export function limitFailedCredentials(createLimiter: Store["createLimiter"], perMinute: number): FailedCredentials {
  const limiter = createLimiter({ points: perMinute, durationSeconds: minuteSeconds });
  return (address, { message }) =>
    consume(limiter, address, `${message}; this address has sent too many invalid credentials`);
}

async function consume(limiter: Limiter, key: string, message: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const retryAfterSeconds = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
    throw new CatalogError("Throttling", message, { retryAfterSeconds });
  }
}
