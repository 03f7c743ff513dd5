import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Authenticator, createAuthenticator } from "./auth/authenticator.ts";
import { createDevelopmentIssuer } from "./auth/development-issuer.ts";
import { createTokenVerifier, remoteKeys } from "./auth/token-verifier.ts";
import type { Config } from "./config.ts";
import { createAddressOf } from "./http/address.ts";
import { type AppParts, createApp } from "./http/app.ts";
import { createBodyMemory } from "./http/body-memory.ts";
import { carryOutOn } from "./http/by-writer.ts";
import { guardConnections } from "./http/connections.ts";
import type { Serve } from "./http/exchange.ts";
import { createFailedCredentials } from "./http/failed-credentials.ts";
import { createHandOver } from "./http/hand-over.ts";
import { addressHandedOver, connectionsHandedOver, listenForHandedOver } from "./http/handed-over.ts";
import { watchLoop } from "./http/loop-delay.ts";
import { createMetrics } from "./http/metrics.ts";
import { claimPort, listenOnPort } from "./http/port.ts";
import { createRateLimit } from "./http/rate-limit.ts";
import { answer, close, createHttpServer, refuseLateRequest, urlOf } from "./http/server.ts";
import type { Log } from "./log.ts";
import { type OpenCatalog, openCatalog, type Replacements } from "./open-catalog.ts";
import { openReadOnlyCatalog } from "./open-read-only-catalog.ts";
import { createWriter, takeCalls } from "./processes/calls.ts";
import type { Group } from "./processes/group.ts";
import { createMemoryLimiter } from "./store/memory-limiter.ts";
import { findNamespace } from "./store/namespaces.ts";
import { countTasks } from "./store/tasks.ts";

export interface RunningService {
  /** Where the service listens, e.g. `http://127.0.0.1:2333`. */
  readonly url: string;
  /** Finishes the requests that were accepted, and then closes the database. */
  stop(): Promise<void>;
}

/** A catalog that is open, and what answers requests to it. */
interface Serving extends AsyncDisposable {
  readonly catalog: OpenCatalog;
  readonly authenticator: Authenticator;
  readonly serve: Serve;
}

/**
 * Starts the catalog: migrates its database, listens, and works on what an earlier run left undone. A
 * database that is unavailable now is migrated when it is available.
 *
 * @param group The processes of which this is one; undefined when there are no others.
 */
export async function startService(
  config: Config,
  log: Log,
  replacements: Replacements = {},
  group?: Group,
): Promise<RunningService> {
  // Before anything is opened, which would have to be closed again.
  const claimed = group === undefined && config.port !== 0 ? await claimPort(config) : undefined;
  const { port } = group ?? claimed ?? config;
  const { limits } = config;
  const partOf = (limit: number) => Math.ceil(limit / (group?.count ?? 1));
  const tokens =
    config.auth.mode === "oidc"
      ? createTokenVerifier({ ...config.auth, keys: remoteKeys(config.auth.issuer, config.auth.jwksUrl) })
      : undefined;
  const metrics = createMetrics(() => countTasks(serving.catalog.store.read));
  const server = createHttpServer();
  const connections = guardConnections(
    server,
    {
      waitingMax: partOf(limits.waitingConnections),
      waitingPerAddressMax: limits.trustedProxies === 0 ? partOf(limits.waitingConnectionsPerAddress) : undefined,
    },
    metrics,
    refuseLateRequest,
  );
  const addressOf = createAddressOf(limits.trustedProxies);
  const loopWatch = watchLoop(log);
  let stopping = false;

  const openToWrite = (hasServed: boolean) =>
    openCatalog(hasServed ? withPresentDatabase(config) : config, log, replacements);
  const first =
    group?.role === "reader" ? await openReadOnlyCatalog(config) : await openToWrite(group?.hasServed ?? false);
  const sharesMemory = group === undefined || config.database.kind === "postgres";
  const shared = {
    rateLimit: createRateLimit(
      sharesMemory
        ? first.store.createLimiter.bind(first.store)
        : (options) => group.createLimiter("requests", options),
      config.rateLimit,
    ),
    failedCredentials: createFailedCredentials(
      group === undefined ? createMemoryLimiter : (options) => group.createLimiter("refused credentials", options),
      limits.failedCredentials,
    ),
    loopWatch,
    remoteDatabases: config.remoteDatabases,
    metrics,
    metricsOfOthers: async () => (await group?.ask({ about: "metrics" })) ?? [],
    log,
  };

  /** Answers requests to a catalog. */
  function partsOf(catalog: OpenCatalog): AppParts & { readonly authenticator: Authenticator } {
    const authenticator = createAuthenticator(catalog.store, tokens);
    return {
      ...shared,
      authenticator,
      developmentIssuer: tokens === undefined ? createDevelopmentIssuer(catalog.store) : undefined,
      addressOf,
      connections,
      bodyMemory: createBodyMemory(limits.bodyMemoryBytes),
      writer: undefined,
      isReady: async () => !stopping && (await findNamespace(catalog.store.read, [])) !== undefined,
      catalog: {
        ...catalog,
        forgetRoles: async (principal) => {
          authenticator.forgetRoles(principal);
          await group?.ask({ about: "changed roles", principal });
        },
      },
    };
  }

  function serveReading(catalog: OpenCatalog, { folder }: Group): Serving {
    const writer = {
      operations: createWriter(callsAt(folder)),
      requests: createHandOver(requestsAt(folder), addressOf, connections),
    };
    const parts = partsOf(catalog);
    const serve = createApp({
      ...parts,
      writer,
      bodyMemory: createBodyMemory(partOf(limits.bodyMemoryBytes)),
      isReady: async () => (await parts.isReady()) && (await writer.requests.isReady()),
    });
    return {
      catalog,
      authenticator: parts.authenticator,
      serve,
      [Symbol.asyncDispose]: async () => {
        writer.operations[Symbol.dispose]();
        writer.requests[Symbol.dispose]();
        await catalog[Symbol.asyncDispose]();
      },
    };
  }

  async function serveAll(catalog: OpenCatalog): Promise<Serving> {
    const parts = partsOf(catalog);
    const others = group === undefined || group.role === "equal" ? undefined : await writeForOthers(parts, group);
    return {
      catalog,
      authenticator: parts.authenticator,
      serve: createApp(parts),
      [Symbol.asyncDispose]: async () => {
        await others?.[Symbol.asyncDispose]();
        await catalog[Symbol.asyncDispose]();
      },
    };
  }

  async function writeForOthers(parts: AppParts, { folder, alone }: Group): Promise<AsyncDisposable> {
    const handedOver = connectionsHandedOver();
    const serve = createApp({ ...parts, addressOf: addressHandedOver, connections: handedOver });
    const requests = await listenForHandedOver(requestsAt(folder), serve, handedOver);
    const calls = await takeCalls(callsAt(folder), carryOutOn(parts.catalog, loopWatch, log));
    return {
      [Symbol.asyncDispose]: async () => {
        await alone;
        await calls[Symbol.asyncDispose]();
        await close(requests);
      },
    };
  }

  if (config.warehouse.scheme === "file") mkdirSync(`/${config.warehouse.path}`, { recursive: true });
  const served: Serving[] = [];
  let serving = group?.role === "reader" ? serveReading(first, group) : await serveAll(first);
  served.push(serving);
  answer(server, (exchange) => serving.serve(exchange), connections);
  const acceptors = await listenOnPort(server, { host: config.host, port });
  first.begin();
  group?.onQuestion(async (question) => {
    if (question.about === "metrics") return metrics.values();
    serving.authenticator.forgetRoles(question.principal);
    return null;
  });
  group?.onWrite(async () => {
    const catalog = await openToWrite(true);
    serving = await serveAll(catalog);
    served.push(serving);
    catalog.begin();
    log.warn("this process writes from now on, because the one that did has ended");
  });

  return {
    url: urlOf(config.host, server),
    stop: async () => {
      stopping = true;
      await close(server, acceptors);
      claimed?.[Symbol.dispose]();
      loopWatch[Symbol.dispose]();
      for (const each of served.toReversed()) await each[Symbol.asyncDispose]();
    },
  };
}

/** A service that has served has a database: one that is gone is not replaced by an empty one. */
function withPresentDatabase(config: Config): Config {
  const { database } = config;
  return database.kind === "sqlite" ? { ...config, database: { ...database, mustExist: true } } : config;
}

/** Where the process that writes takes operations that others are to have carried out. */
function callsAt(folder: string): string {
  return join(folder, "calls");
}

/** Where the process that writes takes requests as they come. */
function requestsAt(folder: string): string {
  return join(folder, "requests");
}
