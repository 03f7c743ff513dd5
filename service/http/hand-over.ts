import {
  Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request,
  type ServerResponse,
} from "node:http";
import { pipeline } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type AnyContract, CatalogError } from "@tiltyard/protocol";
import type { Context } from "hono";
import type { AddressOf } from "./address.ts";
import type { Connections } from "./connections.ts";
import { addressHeader } from "./handed-over.ts";

/** How long the process that writes is waited for, when it has ended and another one takes its place. */
const waitsMs = 5_000;
const retryMs = 10;
/** What belongs to a connection, not to the request that comes on it. */
const ofConnection = ["connection", "expect", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"] as const;

/** Has the process that writes carry out requests. */
export interface HandOver extends Disposable {
  /**
   * @param body What was read of the request's body; it is passed on as it comes when undefined.
   * @throws CatalogError ServiceUnavailable when nothing was answered: the request may have been carried out.
   */
  handOver(context: Context, contract: AnyContract, body?: string): Promise<Response>;
  /** Whether that process takes requests. */
  isReady(): Promise<boolean>;
}

/** @param socketPath Where the process that writes takes what is handed over. */
export function createHandOver(socketPath: string, addressOf: AddressOf, connections: Connections): HandOver {
  const agent = new Agent({ keepAlive: true });

  /** Waits until the process is there: what is sent then is sent once. */
  async function connect(options: Pick<RequestOptions, "method" | "path" | "headers">): Promise<Handed> {
    const givesUpAt = performance.now() + waitsMs;
    for (;;)
      try {
        return await begin({ agent, socketPath, ...options });
      } catch (cause) {
        const isAbsent = cause instanceof Error && "syscall" in cause && cause.syscall === "connect";
        if (!isAbsent || performance.now() > givesUpAt) throw lost(cause);
        await pause(retryMs);
      }
  }

  return {
    handOver: async (context, { content }, body) => {
      const { incoming, outgoing } = context.env as HttpBindings;
      const headers: IncomingHttpHeaders = { ...incoming.headers, [addressHeader]: addressOf(incoming) };
      for (const name of ofConnection) delete headers[name];
      if (body !== undefined) {
        delete headers["transfer-encoding"];
        headers["content-length"] = String(Buffer.byteLength(body));
      }
      const { method = "GET", url: path = "/" } = incoming;
      incoming.once("end", () => connections.accept(incoming));
      const { there, answered } = await connect({ method, path, headers });
      // The other process lets its caller take time for the body.
      there.on("information", () => {
        connections.accept(incoming);
        if (content === "arrow") connections.takesItsTime(incoming);
      });
      outgoing.once("close", () => {
        if (!outgoing.writableFinished) there.destroy();
      });
      if (body !== undefined) there.end(body);
      else incoming.pipe(there);
      try {
        passOn(await answered, outgoing);
      } catch (cause) {
        throw lost(cause);
      }
      return RESPONSE_ALREADY_SENT;
    },
    isReady: () =>
      new Promise((resolve) => {
        const asking = request({ agent, socketPath, path: "/health/ready" }, (answer) => {
          answer.resume();
          resolve(answer.statusCode === 200);
        });
        asking.once("error", () => resolve(false)).end();
      }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** A request to the process that writes. */
interface Handed {
  readonly there: ClientRequest;
  /** Rejects when the connection ends before. */
  readonly answered: Promise<IncomingMessage>;
}

/** @throws Error of the connection, when the process is not there: nothing was sent. */
async function begin(options: RequestOptions): Promise<Handed> {
  const there = request(options);
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    there.once("response", resolve);
    there.on("error", reject);
    there.once("close", () => reject(new Error("the connection was closed")));
  });
  const connected = new Promise<void>((resolve) => {
    there.once("socket", (socket) => {
      if (socket.connecting) socket.once("connect", () => resolve());
      else resolve();
    });
  });
  await Promise.race([connected, answered]);
  return { there, answered };
}

function passOn(answer: IncomingMessage, outgoing: ServerResponse): void {
  const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...headers } = answer.headers;
  outgoing.writeHead(answer.statusCode ?? 500, headers);
  // An answer that breaks off breaks off its client's connection, too.
  pipeline(answer, outgoing, () => undefined);
}

function lost(cause: unknown): CatalogError {
  return new CatalogError(
    "ServiceUnavailable",
    "the process that carries out changes ended before it answered: look whether the change was made, or send it again",
    { cause },
  );
}
