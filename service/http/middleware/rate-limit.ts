import { CatalogError } from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import { RateLimiterRes } from "rate-limiter-flexible";
import type { Limiter, Store } from "../../store/store.ts";
import type { AppEnv } from "../context.ts";

const minuteSeconds = 60;

/** Limits the requests per second of each principal. */
export function rateLimit(createLimiter: Store["createLimiter"], requestsPerSecond: number) {
  const limiter = createLimiter({ points: requestsPerSecond, durationSeconds: 1 });
  return createMiddleware<AppEnv>(async function rateLimit(c, next) {
    const principal = c.get("principal")?.name ?? "";
    await consume(limiter, principal, `${principal} may send ${requestsPerSecond} requests a second`);
    await next();
  });
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
