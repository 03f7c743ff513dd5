import { RateLimiterMemory } from "rate-limiter-flexible";
import type { Store } from "./store.ts";

/** Creates a limiter that counts only the requests of this process. */
export const createMemoryLimiter: Store["createLimiter"] = ({ points, durationSeconds }) =>
  new RateLimiterMemory({ points, duration: durationSeconds });
