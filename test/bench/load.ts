import { Client } from "undici";
import { readUsage } from "./process-usage.ts";

/** The target of the load and the headers of all its requests. */
export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly pid: number;
}

export interface LoadRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** The body: JSON text, or the bytes of an Arrow stream. */
  readonly body?: string | Uint8Array;
}

/** Returns the next request of a connection, counted from 0; undefined when no request remains. */
export type NextRequest = (connection: number) => LoadRequest | undefined;

export interface Measurement {
  readonly requests: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** The processor time of the server per request. */
  readonly cpuUsPerRequest: number;
  /** The resident memory of the server at the end. */
  readonly residentMiB: number;
}

const requestTimeoutMs = 120_000;

/**
 * Keeps every connection busy with one request at a time for a number of seconds, or until a connection has no request
 * left. The first request of each connection opens it and is not counted.
 *
 * @throws Error if the status of a response is not 2xx.
 */
export async function measure(
  target: Target,
  load: { readonly connections: number; readonly seconds: number },
  next: NextRequest,
): Promise<Measurement> {
  const clients = Array.from({ length: load.connections }, () => connect(target));
  try {
    await Promise.all(clients.map((client, connection) => sendNext(client, target, next(connection))));

    const latenciesMs: number[] = [];
    const usageBefore = readUsage(target.pid);
    const start = performance.now();
    let stopAt = start + load.seconds * 1000;
    await Promise.all(
      clients.map(async (client, connection) => {
        for (let sentAt = performance.now(); sentAt < stopAt; ) {
          const request = next(connection);
          if (request === undefined) stopAt = 0;
          await sendNext(client, target, request);
          const answeredAt = performance.now();
          if (request !== undefined) latenciesMs.push(answeredAt - sentAt);
          sentAt = answeredAt;
        }
      }),
    );
    const seconds = (performance.now() - start) / 1000;
    const usage = readUsage(target.pid);
    return {
      ...summarize(latenciesMs, seconds),
      cpuUsPerRequest: ((usage.cpuMs - usageBefore.cpuMs) * 1000) / latenciesMs.length,
      residentMiB: usage.residentMiB,
    };
  } finally {
    await Promise.all(clients.map((client) => client.destroy()));
  }
}

/** Sends one request on a new connection. @returns The body of the response. */
export async function send(target: Target, request: LoadRequest): Promise<string> {
  const client = connect(target);
  try {
    return await sendOn(client, target, request);
  } finally {
    await client.destroy();
  }
}

function connect(target: Target): Client {
  return new Client(target.url, {
    connect: { timeout: requestTimeoutMs },
    headersTimeout: requestTimeoutMs,
    bodyTimeout: requestTimeoutMs,
  });
}

async function sendNext(client: Client, target: Target, request: LoadRequest | undefined): Promise<void> {
  if (request !== undefined) await sendOn(client, target, request);
}

/** Sends one request. `dispatch` needs about half of the processor time of `request`, which leaves more for the servers. */
function sendOn(client: Client, target: Target, { method, path, body }: LoadRequest): Promise<string> {
  const isJson = typeof body === "string";
  const headers = isJson ? { ...target.headers, "content-type": "application/json" } : target.headers;
  return new Promise((resolve, reject) => {
    let status = 0;
    const chunks: Buffer[] = [];
    client.dispatch(
      { method, path, headers, body: body ?? null },
      {
        onRequestStart: () => {},
        onResponseStart: (_, statusCode) => {
          status = statusCode;
        },
        onResponseData: (_, chunk) => {
          chunks.push(chunk);
        },
        onResponseEnd: () => {
          const text = Buffer.concat(chunks).toString();
          if (status >= 200 && status <= 299) resolve(text);
          else reject(new Error(`${method} ${target.url}${path} answered ${status}: ${text.slice(0, 500)}`));
        },
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}

/** Summarizes the latencies of requests that were sent during some seconds. */
export function summarize(latenciesMs: readonly number[], seconds: number) {
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  const percentile = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
  return {
    requests: sorted.length,
    seconds,
    requestsPerSecond: sorted.length / seconds,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    longestMs: percentile(1),
  };
}
