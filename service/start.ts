import { mkdirSync } from "node:fs";
import { createAuthenticator } from "./auth/authenticator.ts";
import { createDevelopmentIssuer } from "./auth/development-issuer.ts";
import { createTokenVerifier, remoteKeys } from "./auth/token-verifier.ts";
import type { Config } from "./config.ts";
import { createApp } from "./http/app.ts";
import { BodyMemory } from "./http/body-memory.ts";
import { createClientAddress } from "./http/client-address.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { openCatalog, type Replacements } from "./open-catalog.ts";
import { close, createHttpServer, listen } from "./server/server.ts";
import { countStalledJobs } from "./store/jobs.ts";
import { findNamespace } from "./store/namespaces.ts";
import { createMemoryLimiter } from "./store/store.ts";
import { countTasks } from "./store/tasks.ts";

export interface RunningService {
  /** The address of the service, such as `http://127.0.0.1:2333`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the catalog and its deferred work. @throws Error if its database or its port is unavailable. */
export async function startService(config: Config, log: Log, replacements: Replacements = {}): Promise<RunningService> {
  const { auth, limits, warehouse } = config;
  if (warehouse.scheme === "file") mkdirSync(`/${warehouse.path}`, { recursive: true });
  const catalog = await openCatalog(config, log, replacements);
  const { store } = catalog;
  const metrics = createMetrics({
    tasks: () => countTasks(store.read),
    stalledJobs: () => countStalledJobs(store.read, store.read.time() - config.stalledAfterMs),
  });
  const verifyToken =
    auth.mode === "oidc"
      ? createTokenVerifier({ ...auth, keys: remoteKeys(auth.issuer, auth.jwksUrl, log) })
      : undefined;
  const authenticator = createAuthenticator(store, verifyToken, config.isolatedNamespaces);
  let isStopping = false;

  const app = createApp({
    catalog,
    authenticator,
    failedCredentials: createMemoryLimiter({ points: limits.failedCredentials, durationSeconds: 60 }),
    loggedRefusals: limits.failedCredentials,
    clientAddress: createClientAddress(limits.trustedProxies),
    createLimiter: store.createLimiter.bind(store),
    requestsPerSecond: config.rateLimit,
    bodyMemory: new BodyMemory(limits.bodyMemoryBytes),
    signIn:
      auth.mode === "oidc" && auth.signIn
        ? { ...auth.signIn, issuer: auth.issuer, audience: auth.audience }
        : undefined,
    developmentIssuer: verifyToken === undefined ? createDevelopmentIssuer(store) : undefined,
    remoteDatabases: config.remoteDatabases,
    // After the deletion of the database file only writes fail, and after the truncation of its log only reads by the cache.
    isReady: async () => {
      await store.write((session) => findNamespace(session, []));
      await store.read.cached("ready", async () => ({}));
      return !isStopping;
    },
    metrics,
    log,
  });
  const server = createHttpServer(app, {
    idleMax: limits.idleConnections,
    idlePerAddressMax: limits.trustedProxies === 0 ? limits.idleConnectionsPerAddress : undefined,
    onEvict: metrics.countEvictedConnection,
  });

  try {
    const url = await listen(server, config);
    catalog.begin();
    return {
      url,
      stop: async () => {
        isStopping = true;
        await close(server);
        await catalog[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await catalog[Symbol.asyncDispose]();
    throw error;
  }
}
