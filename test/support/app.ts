import { bodies } from "@tiltyard/protocol";
import { type AppDeps, createApp } from "../../service/http/app.ts";
import { BodyMemory } from "../../service/http/body-memory.ts";
import { createLog } from "../../service/log.ts";
import { createMetrics } from "../../service/metrics.ts";
import { createMemoryLimiter } from "../../service/store/store.ts";

/** The message of a bug in the handlers of a test app. */
export const secretOfTheService = "secret detail";

/** Creates an app whose callers are all admins, over a catalog that fails with a bug on every access. */
export function createTestApp(replaced: Partial<AppDeps> = {}) {
  return createApp({
    catalog: new Proxy({} as never, {
      get: (_, property) => {
        if (property === "dataOperations") return true;
        throw new TypeError(secretOfTheService);
      },
    }),
    authenticator: async () => ({ name: "any", grants: [{ namespace: [], role: "admin" }] }),
    failedCredentials: createMemoryLimiter({ points: 1_000, durationSeconds: 60 }),
    clientAddress: () => "192.0.2.1",
    createLimiter: createMemoryLimiter,
    requestsPerSecond: undefined,
    loggedRefusals: 1_000,
    bodyMemory: new BodyMemory(bodies.large.bytes * 4),
    developmentIssuer: undefined,
    signIn: undefined,
    remoteDatabases: false,
    isReady: async () => true,
    metrics: createMetrics({ tasks: async () => [], stalledJobs: async () => 0 }),
    log: createLog("silent"),
    ...replaced,
  });
}
