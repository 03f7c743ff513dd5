import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer, maxHeaderSize, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { CatalogError, type ErrorResponse } from "@tiltyard/protocol";
import { installKey, reservedKeyIds } from "./auth/api-key.ts";
import { createAuthenticator } from "./auth/authenticator.ts";
import { installDevelopmentKey, openDevelopmentIssuer } from "./auth/development-issuer.ts";
import { createTokenVerifier, remoteKeys } from "./auth/token-verifier.ts";
import { createFinishing } from "./commits/finish.ts";
import type { Config } from "./config.ts";
import { createDatasets } from "./dataset/datasets.ts";
import { createDeferredWork } from "./deferred-work.ts";
import { createLocations } from "./domain/locations.ts";
import { createAddressOf } from "./http/address.ts";
import { createApp } from "./http/app.ts";
import { createBodyMemory } from "./http/body-memory.ts";
import { type Connections, guardConnections, headersTimeoutMs } from "./http/connections.ts";
import { createFailedCredentials } from "./http/failed-credentials.ts";
import { createGateway } from "./http/gateway.ts";
import { watchLoop } from "./http/loop-delay.ts";
import { createMetrics } from "./http/metrics.ts";
import { createRateLimit } from "./http/rate-limit.ts";
import type { Log } from "./log.ts";
import { createCredentialVendors } from "./storage/credentials.ts";
import { createStorage, type Storage } from "./storage/storage.ts";
import { openSoonerOrLater } from "./store/late-store.ts";
import { findNamespace } from "./store/namespaces.ts";
import { openStore } from "./store/open.ts";
import type { Store } from "./store/store.ts";
import { countTasks } from "./store/tasks.ts";

/** How long requests that were accepted may take to finish once the service is told to stop. */
const drainMs = 25_000;
const closeIdleEveryMs = 50;
/** How long a client may take to read that its request was no HTTP. */
const lingerMs = 1_000;
/** How often connections are looked at whose headers take too long. */
const connectionsEveryMs = 1_000;
/** Node's own code for a request that does not come in time. */
const lateRequestCode = "ERR_HTTP_REQUEST_TIMEOUT";
/** How long a client may take to send a request: a long stream of rows takes its time. */
const requestTimeoutMs = 3_600_000;

export interface RunningService {
  /** Where the service listens, e.g. `http://127.0.0.1:2333`. */
  readonly url: string;
  /** Finishes the requests that were accepted, and then closes the database. */
  stop(): Promise<void>;
}

/** Parts that a test may put in place of the real ones. */
export interface Replacements {
  readonly wrapStore?: (store: Store) => Store;
  readonly wrapStorage?: (storage: Storage) => Storage;
}

/**
 * Starts the catalog: migrates its database, listens, and works on what an earlier run left undone. A
 * database that is away now is migrated when it is there.
 */
export async function startService(config: Config, log: Log, replacements: Replacements = {}): Promise<RunningService> {
  const { wrapStore = (store) => store, wrapStorage = (storage) => storage } = replacements;
  const issuer =
    config.auth.mode === "development"
      ? await openDevelopmentIssuer(config.dataDir, config.bootstrapApiKey)
      : undefined;
  const open = () => openPrepared(config);
  // A server comes back by itself; a file that cannot be used is for somebody to mend.
  const opened =
    config.database.kind === "sqlite"
      ? await open()
      : await openSoonerOrLater(open, (reason) =>
          log.warn({ err: reason.cause }, `${reason.message}. Until it can, requests are answered with 503`),
        );
  const store = wrapStore(opened);
  const storage = wrapStorage(
    createStorage({ s3ForcePathStyle: config.s3ForcePathStyle, fileRoots: fileRootsOf(config) }),
  );
  const finishing = createFinishing({ store, storage, log });
  const commitParts = { store, storage, finishing };

  const tokens = createTokenVerifier(
    config.auth.mode === "oidc"
      ? { ...config.auth, keys: remoteKeys(config.auth.issuer, config.auth.jwksUrl) }
      : (issuer ?? unreachable()).rules,
  );

  const authenticator = createAuthenticator(store, tokens);
  const datasets = createDatasets(commitParts, createGateway(log));
  const { dropRetentionMs, auditRetentionMs, automationDelayMs, limits } = config;
  const worker = createDeferredWork({
    ...commitParts,
    datasets,
    log,
    dropRetentionMs,
    auditRetentionMs,
    automationDelayMs,
  });
  const metrics = createMetrics(() => countTasks(store.read));
  const server = createHttpServer();
  const connections = guardConnections(
    server,
    {
      waitingMax: limits.waitingConnections,
      waitingPerAddressMax: limits.trustedProxies === 0 ? limits.waitingConnectionsPerAddress : undefined,
    },
    metrics,
    (socket) => answerBrokenRequest(socket, lateRequestCode),
  );
  const loopWatch = watchLoop(log);
  let stopping = false;
  const app = createApp({
    catalog: {
      ...commitParts,
      worker,
      credentials: config.vending && createCredentialVendors(config.vending),
      locations: createLocations(config.warehouse, config.allowedLocations),
      datasets,
      dataOperations: config.dataOperations,
      forgetRoles: authenticator.forgetRoles,
      dropRetentionMs,
    },
    authenticator,
    developmentIssuer: issuer,
    rateLimit: createRateLimit(store, config.rateLimit),
    failedCredentials: createFailedCredentials(limits.failedCredentials),
    addressOf: createAddressOf(limits.trustedProxies),
    bodyMemory: createBodyMemory(limits.bodyMemoryBytes),
    connections,
    loopWatch,
    remoteDatabases: config.remoteDatabases,
    metrics,
    log,
    isReady: async () => !stopping && (await findNamespace(store.read, [])) !== undefined,
  });
  if (config.warehouse.scheme === "file") mkdirSync(`/${config.warehouse.path}`, { recursive: true });

  await listen(server, app.fetch, connections, config);
  worker.start();

  return {
    url: urlOf(config.host, server),
    stop: async () => {
      stopping = true;
      await close(server);
      loopWatch[Symbol.dispose]();
      await datasets[Symbol.asyncDispose]();
      await worker.stop();
      await finishing.settled();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** Opens the database with its schema up to date and the keys of the settings in it. */
async function openPrepared({ database, auth, dataDir, bootstrapApiKey, runnerApiKey }: Config): Promise<Store> {
  const store = await openStore(database);
  try {
    if (auth.mode === "development") await installDevelopmentKey(store, dataDir);
    if (bootstrapApiKey !== undefined) await installKey(store, reservedKeyIds.bootstrap, bootstrapApiKey);
    if (runnerApiKey !== undefined) await installKey(store, reservedKeyIds.runner, runnerApiKey, "runner");
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

function createHttpServer(): Server {
  const server = createServer({
    requireHostHeader: false,
    requestTimeout: requestTimeoutMs,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: connectionsEveryMs,
  });
  // What Node and the adapter would refuse by an empty answer is refused by the error body.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.on("clientError", ({ code }: NodeJS.ErrnoException, socket: Socket) => answerBrokenRequest(socket, code));
  return server;
}

async function listen(
  server: Server,
  fetch: Parameters<typeof getRequestListener>[0],
  connections: Connections,
  config: Config,
): Promise<void> {
  const errorHandler = () => Response.json(brokenRequest(), { status: 400 });
  const answer = getRequestListener(fetch, { errorHandler });
  server.on("request", (incoming, response) => {
    connections.begin(incoming, response);
    void answer(incoming, response);
  });
  server.listen(config.port, config.host);
  await once(server, "listening");
}

/** Stops listening, waits for what is under way, and ends what takes too long. */
async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // A client keeps its connection open after its last answer, which would delay the end.
  const idle = setInterval(() => server.closeIdleConnections(), closeIdleEveryMs);
  const overdue = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearInterval(idle);
  clearTimeout(overdue);
}

/**
 * Answers what is not HTTP, or comes too late, with the error body that all other errors have, and closes the connection.
 *
 * @param code Of Node's parser.
 */
function answerBrokenRequest(socket: Socket, code?: string): void {
  if (!socket.writable) return;
  const body = JSON.stringify(brokenRequest(code));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  // A client that does not read the answer, or goes on sending, has no claim to the connection.
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** @param code Of Node's parser. */
function brokenRequest(code?: string): ErrorResponse {
  let why = "the request is not valid HTTP";
  if (code === "HPE_HEADER_OVERFLOW") why = `the path and the headers have more than ${maxHeaderSize} bytes`;
  if (code === lateRequestCode) why = "the request did not come in time";
  return new CatalogError("InvalidInput", why).toResponse("");
}

function urlOf(host: string, server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function fileRootsOf({ warehouse, allowedLocations }: Config): readonly string[] {
  return [warehouse, ...allowedLocations].filter(({ scheme }) => scheme === "file").map(({ path }) => `/${path}`);
}

function unreachable(): never {
  throw new Error("development authentication has its own issuer");
}
