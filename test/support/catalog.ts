import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import {
  type AnyContract,
  arrowTypeOf,
  type Contracts,
  contracts,
  ErrorResponse,
  type ManagementContracts,
  managementContracts,
  type RemoteContracts,
  type ResponseOf,
  type Role,
  remoteContracts,
  requestShape,
  httpRequest as toHttp,
} from "@tiltyard/protocol";
import { afterAll, beforeAll } from "vitest";
import { generateApiKey, hashApiKey } from "../../service/auth/api-key.ts";
import { readConfig } from "../../service/config.ts";
import { createLog, type Log } from "../../service/log.ts";
import type { Replacements } from "../../service/open-catalog.ts";
import { type RunningService, startService } from "../../service/start.ts";
import { putApiKey } from "../../service/store/api-keys.ts";
import type { Database } from "../../service/store/database.ts";
import { putGrant } from "../../service/store/grants.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import { createTestDatabase } from "./database.ts";
import { withOwnClock } from "./own-clock.ts";
import { finalName, pathOf, type TestTable } from "./table.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export { finalName, pathOf, type TestTable };
/** The operations of the protocol, of management and of LanceDB's remote dialect. */
export const operations = { ...contracts, ...managementContracts, ...remoteContracts };
export type Operations = Contracts & ManagementContracts & RemoteContracts;
export type OperationName = keyof Operations;

/** A catalog with its own port, database and warehouse. */
export interface TestCatalog {
  readonly url: string;
  readonly dataDir: string;
  /** The database, for checks that the service cannot answer. */
  readonly database: Database;
  /** An API key with the role admin on the root. */
  readonly adminKey: string;
  /** Creates an API key for a principal with these roles, by namespace in its string form. */
  keyFor(principal: string, grants: Readonly<Record<string, Role>>): Promise<string>;
  /** Calls an operation and checks the answer against its contract. */
  call<Name extends OperationName>(
    name: Name,
    request?: Readonly<Record<string, unknown>>,
    options?: CallOptions,
  ): Promise<Answer<Name>>;
  /** Sends any request, with the key of the administrator unless headers are specified. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

export interface CallOptions {
  readonly key?: string;
  readonly delimiter?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The Arrow stream of an operation on rows. */
  readonly body?: Uint8Array | ReadableStream<Uint8Array>;
}

export interface Answer<Name extends OperationName> {
  readonly status: number;
  /** The body of a success. After a failed call, reading it fails the test with the error. */
  readonly body: ResponseOf<Operations[Name]>;
  /** The body of a failure. After a successful call, reading it fails the test. */
  readonly error: ErrorResponse;
  readonly headers: Headers;
}

/** The logs by their level. Each has a timer that flushes it, so all catalogs of a worker share them. */
const logs = new Map<string, Log>();

export async function startTestCatalog(
  environment: Readonly<Record<string, string>> = {},
  replacements: Replacements = {},
): Promise<TestCatalog> {
  const dataDir = temporaryFolder("tiltyard test ");
  const database = await createTestDatabase("schema");
  const config = readConfig({
    TILTYARD_PORT: "0",
    TILTYARD_DATA_DIR: dataDir,
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_LOG_LEVEL: "silent",
    // The object stores of the tests do not exist.
    TILTYARD_NEW_CATALOG: "1",
    // All tests share one address.
    TILTYARD_FAILED_CREDENTIALS: "1000000",
    TILTYARD_BOOTSTRAP_API_KEY: "admin-key-of-the-tests-0123456789",
    ...environment,
  });
  const log = logs.get(config.logLevel) ?? createLog(config.logLevel);
  logs.set(config.logLevel, log);
  const service: RunningService = await startService(config, log, {
    ...replacements,
    wrapStore: (each) => withOwnClock(replacements.wrapStore?.(each) ?? each),
  });
  const adminKey = config.bootstrapApiKey ?? "";
  /** The database as another process has it open. */
  let store: Promise<Store> | undefined;

  const fetchFrom: TestCatalog["fetch"] = (path, init = {}) =>
    fetch(service.url + path, { ...init, headers: init.headers ?? { "x-api-key": adminKey } });

  return {
    url: service.url,
    dataDir,
    database: config.database,
    adminKey,
    fetch: fetchFrom,
    keyFor: async (principal, grants) => {
      const { id, key } = generateApiKey();
      store ??= openStore(config.database);
      await (await store).write(async (session) => {
        await putApiKey(session, id, principal, hashApiKey(key));
        for (const [namespace, role] of Object.entries(grants))
          await putGrant(session, principal, { namespace: namespace === "$" ? [] : namespace.split("$"), role });
      });
      return key;
    },
    call: async (name, request = {}, options = {}) => {
      const contract: AnyContract = operations[name];
      const { path, init } = httpRequest(contract, request, options);
      const response = await fetchFrom(path, {
        ...init,
        ...(options.body !== undefined && { body: options.body, duplex: "half" }),
        headers: { "x-api-key": options.key ?? adminKey, ...options.headers },
      });
      return readAnswer(contract, response);
    },
    stop: async () => {
      await (await store)?.[Symbol.asyncDispose]();
      await service.stop();
      await database.drop();
    },
  };
}

/** Starts one catalog for all tests of a file. */
export function useCatalog(environment: Readonly<Record<string, string>> = {}): TestCatalog {
  let started: TestCatalog | undefined;
  beforeAll(async () => {
    started = await startTestCatalog(environment);
  });
  afterAll(() => started?.stop());
  return new Proxy({} as TestCatalog, {
    get: (_, property) => {
      if (started === undefined) throw new Error("the catalog runs only while tests do");
      return started[property as keyof TestCatalog];
    },
  });
}

/** Converts a request to HTTP as clients do. An index has a default name unless the request names it. */
export function httpRequest(
  contract: AnyContract,
  request: Readonly<Record<string, unknown>>,
  options: { readonly delimiter?: string } = {},
): { readonly path: string; readonly init: RequestInit } {
  const { method, path, json } = toHttp(requestShape(contract), { indexName: "an_index", ...request }, options);
  return { path, init: json === undefined || contract.content === "arrow" ? { method } : { method, body: json } };
}

async function readAnswer<Name extends OperationName>(
  contract: AnyContract,
  response: Response,
): Promise<Answer<Name>> {
  // The pipe locks the body. Otherwise fetch would cancel it as soon as the response is garbage.
  if (response.ok && arrowTypeOf(contract.response) !== undefined && response.body !== null)
    return answerOf(contract, response, response.body.pipeThrough(new TransformStream()));
  const text = await response.text();
  const where = `${contract.operationId} answered ${response.status} ${text}`;
  if (!response.ok) {
    const error = ErrorResponse.strict().parse(JSON.parse(text));
    if (error.status !== response.status) throw new Error(`${where}, but its body has another status`);
    return {
      status: response.status,
      get body(): never {
        throw new Error(where);
      },
      error,
      headers: response.headers,
    };
  }
  if (response.status !== contract.status) throw new Error(where);
  return answerOf(contract, response, text === "" ? undefined : JSON.parse(text));
}

function answerOf<Name extends OperationName>(contract: AnyContract, response: Response, body: unknown): Answer<Name> {
  return {
    status: response.status,
    body: contract.response.parse(body) as ResponseOf<Operations[Name]>,
    get error(): never {
      throw new Error(`${contract.operationId} answered ${response.status}`);
    },
    headers: response.headers,
  };
}

/** Declares a table in a new namespace. */
export async function declareTable(catalog: TestCatalog, namespace = uniqueName("ns")): Promise<TestTable> {
  await catalog.call("createNamespace", { id: [namespace], mode: "ExistOk" });
  const id = [namespace, uniqueName("t")];
  const { location } = (await catalog.call("declareTable", { id })).body;
  return { id, location };
}

/** Writes a staged manifest as a Lance client does. @returns Its `manifest_path`. */
export function stageManifest(table: TestTable, version: number, options: StageOptions = {}): string {
  const { branch, suffix = crypto.randomUUID(), content = `version ${version}`, scheme = "V2" } = options;
  const folder = `${pathOf(table)}${branch === undefined ? "" : `/tree/${branch}`}/_versions`;
  const name = finalName(version, scheme);
  const file = `/${folder}/${name}-${suffix}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file.slice(1);
}

export interface StageOptions {
  readonly branch?: string;
  readonly suffix?: string;
  readonly content?: string | Uint8Array;
  readonly scheme?: "V1" | "V2";
}

/** Commits a version with a freshly staged manifest. */
export async function commit(catalog: TestCatalog, table: TestTable, version: number, options: StageOptions = {}) {
  const { branch } = options;
  return catalog.call("createTableVersion", {
    id: table.id,
    version,
    manifest_path: stageManifest(table, version, options),
    naming_scheme: options.scheme ?? "V2",
    ...(branch !== undefined && { branch }),
  });
}

export function readText(file: string): string {
  return readFileSync(file, "utf8");
}

let counter = 0;
export function uniqueName(prefix: string): string {
  counter += 1;
  return `${prefix}_${counter}`;
}
