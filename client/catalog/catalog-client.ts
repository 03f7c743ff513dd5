import { setTimeout as sleep } from "node:timers/promises";
import {
  type AnyContract,
  arrowFile,
  catalogContracts,
  httpRequest,
  isIdempotent,
  jsonOrUndefined,
  managementContracts,
  parsing,
  problemsIn,
  requestShape,
} from "@tiltyard/protocol";
import pRetry from "p-retry";
import { problemOfBaseUrl } from "./base-url.ts";
import { type Context, headersOf, withHeaders, withoutHeaders } from "./context-headers.ts";
import type { CatalogClient, ManagementClient } from "./documented-operations.ts";
import { CatalogConnectionError, CatalogRequestError, CatalogResponseError } from "./errors.ts";
import type { CallOptions } from "./operation-types.ts";
import { SilenceLimit } from "./silence.ts";

export interface CatalogClientOptions {
  /** The URL of the catalog, such as `http://127.0.0.1:2333`. */
  readonly url: string;
  /** The API key. It has precedence over a token. */
  readonly apiKey?: string | undefined;
  /** A token, or a function that returns one for each request; calls reject with the errors of that function. */
  readonly token?: string | (() => Promise<string>) | undefined;
  /**
   * The maximum silence of the catalog in milliseconds: before its response, and between two parts of a sent or
   * received body. Infinity is no limit.
   */
  readonly timeoutMs?: number;
  /** The number of retries of an idempotent call. */
  readonly retries?: number;
  readonly fetch?: typeof fetch;
  /** The context entries that are sent with every request. */
  readonly context?: Context;
}

const timeoutMsDefault = 30_000;
const retriesDefault = 4;
/** The retried statuses: of the catalog, and of a gateway in front of it. A 500 is a fault, which a retry would repeat. */
const retriedStatuses: readonly number[] = [429, 502, 503, 504];
/** The longest delay that a catalog may request before a retry. A longer one ends the call with the error. */
const retryAfterSecondsMax = 60;
const backoff = { minTimeout: 50, maxTimeout: 5_000, randomize: true };

/**
 * Creates a client of a catalog with its operations as methods: `await catalog.describeTable({ id: ["films"] })`.
 *
 * Calls reject with `CatalogRequestError` if the catalog rejects the request, with `CatalogConnectionError` if it does
 * not respond, and with `CatalogResponseError` if the response is not one of the operation.
 */
export function createCatalogClient(options: CatalogClientOptions): CatalogClient {
  return createClient<CatalogClient>(catalogContracts, options);
}

/**
 * Creates a client of the management of a catalog: keys, roles, transactions, dropped tables. `await
 * management.listTransactions({ id: ["prod"], status: ["Failed"] })`. Its errors are those of `createCatalogClient`.
 */
export function createManagementClient(options: CatalogClientOptions): ManagementClient {
  return createClient<ManagementClient>(managementContracts, options);
}

function createClient<Client>(registry: Readonly<Record<string, AnyContract>>, options: CatalogClientOptions): Client {
  const problem = problemOfBaseUrl(options.url);
  if (problem !== undefined) throw new Error(`the URL of the catalog ${problem}`);
  const { timeoutMs = timeoutMsDefault, retries = retriesDefault } = options;
  if (!(timeoutMs > 0)) throw new Error(`timeoutMs must be more than 0, or Infinity for no limit, not ${timeoutMs}`);
  if (!(retries >= 0) || retries % 1 > 0) throw new Error(`retries must be 0 or a positive integer, not ${retries}`);
  for (const credential of [options.apiKey, options.token])
    if (typeof credential === "string") requireValidCredential(credential);
  const methods = Object.entries(registry).map(([name, contract]) => [
    name,
    (request: Request, callOptions: CallOptions = {}) => call(options, contract, request, callOptions),
  ]);
  return Object.fromEntries(methods) as Client;
}

type Request = Readonly<Record<string, unknown>> & {
  readonly id?: readonly string[];
  readonly indexName?: string;
  readonly context?: Context;
};

/** Calls an operation. If the response is lost, a call that is not idempotent may have succeeded. */
function call(
  client: CatalogClientOptions,
  contract: AnyContract,
  request: Request,
  options: CallOptions,
): Promise<unknown> {
  const { signal } = options;
  return pRetry(() => callOnce(client, contract, request, options), {
    ...backoff,
    retries: isIdempotent(contract) ? (client.retries ?? retriesDefault) : 0,
    ...(signal !== undefined && { signal }),
    shouldRetry: async ({ error, retryDelay }) => {
      if (error instanceof CatalogConnectionError) return true;
      if (!(error instanceof CatalogRequestError) || !retriedStatuses.includes(error.status)) return false;
      // The catalog may request a longer delay than the backoff.
      const { retryAfterSeconds = 0 } = error;
      if (retryAfterSeconds > retryAfterSecondsMax) return false;
      const pause = sleep(Math.max(retryAfterSeconds * 1000 - retryDelay, 0), undefined, { signal });
      // The error of the pause is an AbortError, whatever the reason of the signal is.
      await pause.catch(() => signal?.throwIfAborted());
      return true;
    },
  });
}

async function callOnce(
  client: CatalogClientOptions,
  contract: AnyContract,
  { context: ownContext, ...request }: Request,
  { signal, body: arrow }: CallOptions,
): Promise<unknown> {
  const context = { ...client.context, ...ownContext };
  const hasContext = Object.keys(context).length > 0;
  const { method, path, json } = httpRequest(requestShape(contract), {
    ...request,
    ...(hasContext && { context: withoutHeaders(context) }),
  });
  const url = client.url.replace(/\/+$/, "") + path;
  const isArrow = contract.content === "arrow";
  const headers = headersOf(context);
  if (method === "POST")
    headers.set("content-type", isArrow ? "application/vnd.apache.arrow.stream" : "application/json");
  await addCredential(headers, client);

  using silence = new SilenceLimit(client.timeoutMs ?? timeoutMsDefault);
  let response: Response;
  let bytes: Uint8Array;
  try {
    response = await (client.fetch ?? fetch)(url, {
      method,
      redirect: "manual",
      headers,
      ...(method === "POST" && { body: isArrow ? silence.passing(arrow ?? new Uint8Array()) : json, duplex: "half" }),
      signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
    } as RequestInit);
    bytes = new Uint8Array(await new Response(response.body && silence.passing(response.body)).arrayBuffer());
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new CatalogConnectionError(contract.operationId, url, error);
  }
  const isRows = response.ok && contract.response === arrowFile;
  const text = isRows ? "" : new TextDecoder().decode(bytes);
  if (!response.ok) throw new CatalogRequestError(contract.operationId, response, text);
  if (isRows) return { data: bytes, context: withHeaders({}, response.headers) };

  const answer = answerOf(contract, url, text);
  if (typeof answer !== "object") return answer;
  const { bareField } = contract;
  const fields = (bareField === undefined ? answer : { [bareField]: answer }) as Request;
  return { ...fields, context: withHeaders(fields.context ?? {}, response.headers) };
}

/** Parses the text of a successful response. @throws CatalogResponseError */
function answerOf({ operationId, response }: AnyContract, url: string, text: string): unknown {
  const json = jsonOrUndefined(text);
  const { success, data = {}, error } = response.safeParse(json, parsing);
  const isJson = json !== undefined || text === "";
  if (success && isJson) return data;
  const [problem = "text that is not JSON"] = isJson && error ? problemsIn(error, "the response") : [];
  throw new CatalogResponseError(operationId, url, problem);
}

async function addCredential(headers: Headers, { apiKey, token }: CatalogClientOptions): Promise<void> {
  if (apiKey !== undefined) return headers.set("x-api-key", apiKey);
  if (token === undefined) return;
  const value = typeof token === "string" ? token : await token();
  requireValidCredential(value);
  headers.set("authorization", `Bearer ${value}`);
}

/** Validates a key or a token, because the error of fetch about an invalid one would contain it. */
function requireValidCredential(credential: string): void {
  if (!/^[\x20-\x7e]*$/.test(credential.trim()))
    throw new Error("the key or token of the catalog contains invalid characters, such as a line break");
}
