import { on } from "node:events";
import { jsonOrUndefined } from "@tiltyard/protocol";
import pRetry from "p-retry";
import type { z } from "zod";

/** An error response of Ray, or the lack of a response. */
export class JobError extends Error {
  override readonly name = "JobError";
  /** The HTTP status; undefined without a response. */
  readonly status: number | undefined;

  constructor(message: string, options: ErrorOptions & { readonly status?: number } = {}) {
    super(message, options);
    this.status = options.status;
  }
}

/** The timeout of Ray's response, and between two parts of it. */
const answerTimeoutMs = 30_000;
/** The retries of a request, which suffice for the recovery of a port forwarding or of the dashboard. */
const retries = { retries: Infinity, minTimeout: 100, maxTimeout: 5_000, maxRetryTime: 60_000 };
/** The silence after which a connection may be dead. */
const silenceMs = 60_000;

/**
 * Sends requests to Ray's dashboard. They are retried if a connection breaks or the dashboard is not ready yet, so they
 * must be idempotent.
 *
 * The requests do not use `fetch`, because Ray rejects its browser headers, except with GET. undici loads slowly,
 * and most commands send nothing to Ray.
 */
export class Dashboard {
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;

  /**
   * @param url The URL of the dashboard, such as `http://127.0.0.1:8265`.
   * @param token The token of a Ray that requires one.
   */
  constructor(url: string, token?: string) {
    this.url = url.replace(/\/+$/, "");
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /**
   * Sends a request.
   *
   * @param bytesMax The maximum length of the response.
   * @returns The body of the response.
   * @throws JobError
   */
  request(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: object,
    bytesMax = Number.POSITIVE_INFINITY,
  ): Promise<string> {
    return pRetry(() => this.#requestOnce(method, path, body, bytesMax), {
      ...retries,
      shouldRetry: ({ error }) => error instanceof JobError && isStarting(error),
    });
  }

  /** Reads JSON. @throws JobError also for another body, such as the page of a login in front of the dashboard. */
  async read<Schema extends z.ZodType>(path: string, schema: Schema, bytesMax?: number): Promise<z.output<Schema>> {
    const { data, error } = schema.safeParse(jsonOrUndefined(await this.request("GET", path, undefined, bytesMax)));
    if (error === undefined) return data;
    throw new JobError(`no dashboard of Ray answers at ${this.url}: GET ${path} returned another body. Check the URL`, {
      cause: error,
    });
  }

  /**
   * Returns the messages of a WebSocket until either side closes it, the connection breaks, or no message arrives for a
   * minute. Ray reads nothing from the connection, so it is ended without a closing handshake.
   */
  async *messages(path: string, signal?: AbortSignal): AsyncGenerator<string, void> {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(this.url.replace(/^http/, "ws") + path, { headers: this.#headers });
    // Its end before it was open is an error too.
    socket.on("error", () => {});
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), silenceMs);
    try {
      const end = signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]);
      for await (const [data] of on(socket, "message", { close: ["close"], signal: end })) {
        timer.refresh();
        yield String(data);
      }
    } catch (error) {
      if (signal?.aborted) throw error;
    } finally {
      clearTimeout(timer);
      socket.terminate();
    }
  }

  async #requestOnce(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body: object | undefined,
    bytesMax: number,
  ): Promise<string> {
    const { request } = await import("undici");
    const isBytes = body instanceof Uint8Array;
    const answer = await request(this.url + path, {
      method,
      headers: { ...this.#headers, ...(body && !isBytes && { "content-type": "application/json" }) },
      body: isBytes ? body : body === undefined ? null : JSON.stringify(body),
      headersTimeout: answerTimeoutMs,
      bodyTimeout: answerTimeoutMs,
    })
      .then(async ({ statusCode, body }) => ({ status: statusCode, text: await textOf(body, bytesMax) }))
      .catch((cause) => {
        if (cause instanceof JobError) throw cause;
        throw new JobError(`Ray's dashboard at ${this.url} does not respond`, { cause });
      });
    if (answer.status >= 200 && answer.status < 300) return answer.text;
    throw refusal(answer.status, `${method} ${path}`, answer.text.trim());
  }
}

/** Reads a body. @throws JobError if it is too long, with the status of such a body. */
async function textOf(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > bytesMax) throw new JobError(`Ray's response has more than ${bytesMax} bytes`, { status: 413 });
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function refusal(status: number, request: string, text: string): JobError {
  const message =
    status === 401 || status === 403
      ? `Ray requires a token: ${text}. Set RAY_AUTH_TOKEN, or the parameter auth: token`
      : `Ray: ${request}: ${reasonIn(text) || `HTTP ${status}`}`;
  return new JobError(message, { status });
}

/**
 * Reports whether an error only means that Ray is starting. The head responds before its parts that accept jobs are
 * ready.
 */
function isStarting({ status, message }: JobError): boolean {
  if (status === undefined || (status >= 502 && status <= 504)) return true;
  return status === 500 && message.includes("No available agent");
}

/** Returns the reason of a failure. Ray returns a whole stack trace, whose last error is the cause. */
function reasonIn(text: string): string {
  const lines = text.split("\n");
  return lines.findLast((line) => /^[\w.]*(Error|Exception): /.test(line)) ?? lines.at(-1) ?? "";
}
