import { RateLimiterMemory } from "rate-limiter-flexible";
import type { Store } from "./store.ts";

/** Creates a limiter that counts in this process alone. */
export const createMemoryLimiter: Store["createLimiter"] = ({ points, durationSeconds }) =>
  new RateLimiterMemory({ points, duration: durationSeconds });
