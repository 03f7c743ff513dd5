import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "./address.ts";
import type { Metrics } from "./metrics.ts";

/** How long the path and the headers of a request may take. */
export const headersTimeoutMs = 10_000;
/** A body comes at this rate at least, in each stretch of time of this length. */
const bodyBytesPerSecondMin = 4 * 1024;
const stretchMs = 10_000;
const bodyBytesMin = (bodyBytesPerSecondMin * stretchMs) / 1000;
const lookEveryMs = 1_000;

export interface ConnectionLimits {
  /** Connections without a whole request, of all clients together. */
  readonly waitingMax: number;
  /** Of one address; undefined is no limit, because a proxy has one address for all. */
  readonly waitingPerAddressMax: number | undefined;
}

/** Watches over connections on which no whole request has come. */
export interface Connections {
  /** The caller of a request may do what it asks for: it no longer counts as waiting. */
  accept(incoming: IncomingMessage): void;
  /** The body of a request may come as slowly as its caller makes it. */
  takesItsTime(incoming: IncomingMessage): void;
}

/** A body that is coming, and how much its connection had brought when the stretch of time began. */
interface ComingBody {
  readonly response: ServerResponse;
  readonly since: number;
  readonly bytesBefore: number;
}

/**
 * Holds the connections of a server to limits. One that is idle, or that has sent a part of a request, is waiting; when
 * too many are, the one that has been waiting longest is closed: a client that sends what it has to say is never that.
 *
 * @param refuse Answers a request that did not come in time, and closes its connection.
 */
export function guardConnections(
  server: Server,
  limits: ConnectionLimits,
  metrics: Metrics,
  refuse: (socket: Socket) => void,
): Connections {
  const waiting = new WaitingConnections();
  const bodies = new Map<IncomingMessage, ComingBody>();
  /** Of each connection: a client may send requests before it has the answers to those before. */
  const underWay = new WeakMap<Socket, number>();

  const startsToWait = (socket: Socket) => {
    if (socket.destroyed) return;
    waiting.add(socket);
    const longest = waiting.oneTooMany(socket, limits);
    if (longest === undefined) return;
    metrics.countClosedConnection("too many without a request");
    waiting.delete(longest);
    longest.destroy();
  };
  server.on("connection", (socket: Socket) => {
    socket.once("close", () => waiting.delete(socket));
    startsToWait(socket);
  });
  // Before the listener that serves the request.
  server.prependListener("request", (incoming, response) => {
    const { socket } = incoming;
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1);
    if (hasBody(incoming)) bodies.set(incoming, { response, since: performance.now(), bytesBefore: socket.bytesRead });
    else waiting.delete(socket);
    response.once("close", () => {
      const left = (underWay.get(socket) ?? 1) - 1;
      underWay.set(socket, left);
      bodies.delete(incoming);
      if (left === 0) startsToWait(socket);
    });
  });
  const looking = setInterval(() => {
    for (const [incoming, body] of bodies) {
      const now = performance.now();
      const { bytesRead } = incoming.socket;
      // What has come and was not taken is no fault of the client's.
      const keepsUp = incoming.readableLength > 0 || bytesRead - body.bytesBefore >= bodyBytesMin;
      if (incoming.complete) bodies.delete(incoming);
      else if (now - body.since < stretchMs) continue;
      else if (keepsUp) bodies.set(incoming, { ...body, since: now, bytesBefore: bytesRead });
      else {
        metrics.countClosedConnection("a slow body");
        bodies.delete(incoming);
        if (body.response.headersSent) incoming.socket.destroy();
        else refuse(incoming.socket);
      }
    }
  }, lookEveryMs).unref();
  server.once("close", () => clearInterval(looking));

  return {
    accept: (incoming) => waiting.delete(incoming.socket),
    takesItsTime: (incoming) => bodies.delete(incoming),
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

/** Connections in the order in which they began to wait. */
class WaitingConnections {
  readonly #all = new Set<Socket>();
  readonly #byAddress = new Map<string, Set<Socket>>();
  /** A socket that is closed has no address any more. */
  readonly #addresses = new WeakMap<Socket, string>();

  add(socket: Socket): void {
    const address = this.#addressOf(socket);
    this.delete(socket);
    this.#all.add(socket);
    const neighbours = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, neighbours.add(socket));
  }

  delete(socket: Socket): void {
    if (!this.#all.delete(socket)) return;
    const address = this.#addressOf(socket);
    const neighbours = this.#byAddress.get(address);
    neighbours?.delete(socket);
    if (neighbours?.size === 0) this.#byAddress.delete(address);
  }

  /** The one that has been waiting longest, when there are too many now that one was added. */
  oneTooMany(added: Socket, { waitingMax, waitingPerAddressMax = waitingMax }: ConnectionLimits): Socket | undefined {
    const neighbours = this.#byAddress.get(this.#addressOf(added)) ?? new Set();
    if (neighbours.size > waitingPerAddressMax) return neighbours.values().next().value;
    return this.#all.size > waitingMax ? this.#all.values().next().value : undefined;
  }

  #addressOf(socket: Socket): string {
    let address = this.#addresses.get(socket);
    if (address === undefined) {
      address = networkOf(socket.remoteAddress);
      this.#addresses.set(socket, address);
    }
    return address;
  }
}
