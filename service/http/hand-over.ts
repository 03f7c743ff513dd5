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
import { type AnyContract, CatalogError } from "@tiltyard/protocol";
import { connectToWriter, writerLost } from "../processes/writer-socket.ts";
import type { AddressOf } from "./address.ts";
import type { Connections } from "./connections.ts";
import type { Exchange } from "./exchange.ts";
import { addressHeader } from "./handed-over.ts";
import { closeUnlessComplete, takeRest } from "./refused-body.ts";

/** What belongs to a connection, not to the request that comes on it. */
const ofConnection = ["connection", "expect", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"] as const;

/** Hands requests over to the process that writes, with bodies of any length. */
export interface HandOver extends Disposable {
  /**
   * @throws CatalogError ServiceUnavailable when nothing was answered: the request may have been carried out; InvalidInput
   *   when its client left before the other process had it.
   */
  handOver(exchange: Exchange, contract: AnyContract): Promise<void>;
  /** Whether that process takes requests. */
  isReady(): Promise<boolean>;
}

/** @param socketPath Where the process that writes takes what is handed over. */
export function createHandOver(socketPath: string, addressOf: AddressOf, connections: Connections): HandOver {
  const agent = new Agent({ keepAlive: true });
  return {
    handOver: async ({ incoming, outgoing }, { content }) => {
      const headers: IncomingHttpHeaders = { ...incoming.headers, [addressHeader]: addressOf(incoming) };
      for (const name of ofConnection) delete headers[name];
      const { method = "GET", url: path = "/" } = incoming;
      incoming.once("end", () => connections.accept(incoming));
      const { there, answered } = await connectToWriter(() => begin({ agent, socketPath, method, path, headers }));
      // The other process lets its caller take time for the body.
      there.on("information", () => {
        connections.accept(incoming);
        if (content === "arrow") connections.takesItsTime(incoming);
      });
      outgoing.once("close", () => {
        if (!outgoing.writableFinished) there.destroy();
      });
      // The client may have gone while that process was away: a body that was aborted before it is piped never ends.
      if (outgoing.destroyed) there.destroy();
      // A body may come long after its headers, which the other process answers, or accepts, at once.
      if (!incoming.complete && incoming.readableLength === 0) there.flushHeaders();
      incoming.pipe(there);
      try {
        const answer = await answered;
        if (incoming.complete) passOn(answer, outgoing);
        else {
          // The rest of a body whose request was refused is not for the other process.
          incoming.unpipe(there);
          closeUnlessComplete(incoming, outgoing);
          passOn(answer, outgoing, () => {
            there.destroy();
            return takeRest(incoming);
          });
        }
      } catch (cause) {
        if (!outgoing.destroyed) throw writerLost(cause);
        if (!there.headersSent)
          throw new CatalogError("InvalidInput", "the client left before its request was sent on");
        // What became of it the other process logs.
      }
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

/** @param beforeEnd What the end of the answer waits for. */
function passOn(answer: IncomingMessage, outgoing: ServerResponse, beforeEnd?: () => Promise<void>): void {
  const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...headers } = answer.headers;
  outgoing.writeHead(answer.statusCode ?? 500, headers);
  async function* withWait(chunks: AsyncIterable<Uint8Array>) {
    yield* chunks;
    await beforeEnd?.();
  }
  // An aborted answer aborts its client's connection, too.
  if (beforeEnd === undefined) pipeline(answer, outgoing, () => undefined);
  else pipeline(answer, withWait, outgoing, () => undefined);
}
