import { setTimeout as sleep } from "node:timers/promises";
import {
  type AnyContract,
  arrowFile,
  type Contracts,
  contracts,
  httpRequest,
  isIdempotent,
  type ManagementContracts,
  managementContracts,
  type ResponseOf,
  requestShape,
} from "@tiltyard/protocol";
import pRetry from "p-retry";
import type { z } from "zod";
import { type Context, headersOf, withHeaders, withoutHeaders } from "./context-headers.ts";
import { CatalogConnectionError, CatalogRequestError } from "./errors.ts";
import { SilenceLimit } from "./silence.ts";

export interface CatalogClientOptions {
  /** Where the catalog is, e.g. `http://127.0.0.1:2333`. */
  readonly url: string;
  /** One of the two; an API key goes first. */
  readonly apiKey?: string | undefined;
  readonly token?: string | (() => Promise<string>) | undefined;
  /**
   * How long the catalog may be silent, in milliseconds: before it answers, and between two pieces of what is
   * sent or received.
   */
  readonly timeoutMs?: number;
  /** How often an idempotent call is retried. */
  readonly retries?: number;
  readonly fetch?: typeof fetch;
  /** Entries that go with every request. */
  readonly context?: Context;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** The Arrow stream of an operation that takes one. */
  readonly body?: Uint8Array | ReadableStream<Uint8Array>;
}

/** A schema without fields has a type that forbids every field. */
type QueryOf<C extends AnyContract> = string extends keyof z.infer<C["query"]> ? object : Partial<z.infer<C["query"]>>;

/** What a caller gives an operation: the id as its parts, the fields of query and body. */
export type CatalogRequest<C extends AnyContract> = {
  /** The parts of the object's identifier; the root namespace when absent. */
  readonly id?: readonly string[];
  /** The name of the index, for the operations on one. */
  readonly indexName?: string;
} & QueryOf<C> &
  Omit<z.input<C["body"]>, "id" | "context"> & { readonly context?: Context };

/**
 * The answer, with the headers of the response in its context. An answer that is a number or a
 * text is just that; rows are an Arrow IPC file, held as a whole; a map is in the field that the request has it in.
 */
export type CatalogAnswer<C extends AnyContract> =
  ResponseOf<C> extends number | string
    ? ResponseOf<C>
    : (ResponseOf<C> extends undefined
        ? object
        : ResponseOf<C> extends ReadableStream
          ? { readonly data: Uint8Array }
          : C["bareField"] extends string
            ? { readonly [Name in C["bareField"]]: ResponseOf<C> }
            : Omit<ResponseOf<C>, "context">) & {
        readonly context: Context;
      };

/** Operations as methods. */
type ClientOf<Registry extends Readonly<Record<string, AnyContract>>> = {
  readonly [Name in keyof Registry]: (
    request: CatalogRequest<Registry[Name]>,
    options?: CallOptions,
  ) => Promise<CatalogAnswer<Registry[Name]>>;
};

/** Every operation of the protocol as a method. */
export type CatalogClient = ClientOf<Contracts>;
/** Every operation of management as a method. */
export type ManagementClient = ClientOf<ManagementContracts>;

const timeoutMsDefault = 30_000;
const retriesDefault = 4;
const backoff = { minTimeout: 50, maxTimeout: 5_000, randomize: true };

/**
 * A catalog, by its operations: `await catalog.describeTable({ id: ["films"] })`.
 *
 * Calls reject with `CatalogRequestError` when the catalog refused, and with
 * `CatalogConnectionError` when it gave no answer.
 */
export function createCatalogClient(options: CatalogClientOptions): CatalogClient {
  return createClient(contracts, options);
}

/**
 * The management of a catalog, by its operations: keys, roles, transactions, dropped tables.
 * `await management.listTransactions({ id: ["prod"], status: ["Failed"] })`. It rejects as the
 * catalog's client does.
 */
export function createManagementClient(options: CatalogClientOptions): ManagementClient {
  return createClient(managementContracts, options);
}

function createClient<Registry extends Readonly<Record<string, AnyContract>>>(
  registry: Registry,
  options: CatalogClientOptions,
): ClientOf<Registry> {
  // What fetch says of such a header has the whole key in it.
  for (const credential of [options.apiKey, options.token])
    if (typeof credential === "string" && !/^[\x20-\x7e]*$/.test(credential.trim()))
      throw new Error("the key or token of the catalog has characters that none has, such as a line break");
  const methods = Object.entries(registry).map(([name, contract]) => [
    name,
    (request: Request, callOptions: CallOptions = {}) => call(options, contract, request, callOptions),
  ]);
  return Object.fromEntries(methods) as ClientOf<Registry>;
}

type Request = Readonly<Record<string, unknown>> & {
  readonly id?: readonly string[];
  readonly indexName?: string;
  readonly context?: Context;
};

/** Any call that is not idempotent may have been carried out although its answer was lost. */
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
      if (!(error instanceof CatalogRequestError) || error.status !== 503) return false;
      // What the catalog asks for beyond the backoff.
      await sleep(Math.max((error.retryAfterSeconds ?? 0) * 1000 - retryDelay, 0), undefined, { signal });
      return true;
    },
  });
}

async function callOnce(
  client: CatalogClientOptions,
  contract: AnyContract,
  { context: ownContext, ...fields }: Request,
  { signal, body: arrow }: CallOptions,
): Promise<unknown> {
  const context = { ...client.context, ...ownContext };
  const hasContext = Object.keys(context).length > 0;
  const { method, path, json } = httpRequest(requestShape(contract), {
    ...fields,
    ...(hasContext && { context: withoutHeaders(context) }),
  });
  const url = client.url.replace(/\/+$/, "") + path;
  const isArrow = contract.content === "arrow";

  using silence = new SilenceLimit(client.timeoutMs ?? timeoutMsDefault);
  let response: Response;
  let bytes: Uint8Array;
  try {
    response = await (client.fetch ?? fetch)(url, {
      method,
      headers: {
        ...headersOf(context),
        ...(await credentialOf(client)),
        ...(method === "POST" && {
          "content-type": isArrow ? "application/vnd.apache.arrow.stream" : "application/json",
        }),
      },
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

  const answer = text === "" ? {} : JSON.parse(text);
  if (Array.isArray(answer) || typeof answer !== "object") return answer;
  const parsed = (text === "" ? answer : contract.response.parse(answer)) as Request;
  if (contract.bareField !== undefined)
    return { [contract.bareField]: parsed, context: withHeaders({}, response.headers) };
  return { ...parsed, context: withHeaders(parsed.context ?? {}, response.headers) };
}

async function credentialOf({ apiKey, token }: CatalogClientOptions): Promise<Record<string, string>> {
  if (apiKey !== undefined) return { "x-api-key": apiKey };
  if (token === undefined) return {};
  return { authorization: `Bearer ${typeof token === "string" ? token : await token()}` };
}
