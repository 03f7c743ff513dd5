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
/** How long a connection may wait, however many others there are: a client between two requests is not closed because of a rush. */
const waitsAtLeastMs = 100;

export interface ConnectionLimits {
  /** Connections without a whole request, of all clients together. */
  readonly waitingMax: number;
  /** Of one address; undefined is no limit, because a proxy has one address for all. */
  readonly waitingPerAddressMax: number | undefined;
}

/** Watches over connections on which no whole request has come. */
export interface Connections {
  /** The headers of a request have come. */
  begin(incoming: IncomingMessage, response: ServerResponse): void;
  /** The caller of a request may do what it asks for: it no longer counts as waiting. */
  accept(incoming: IncomingMessage): void;
  /** The body of a request may come as slowly as its caller makes it. */
  takesItsTime(incoming: IncomingMessage): void;
}

/** A body that is coming, and how much its connection had brought when the stretch of time began. */
interface ComingBody {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  since: number;
  bytesBefore: number;
}

/** What is known of an open connection. */
interface Connection {
  readonly socket: Socket;
  readonly neighbourhood: Neighbourhood;
  /** Its requests whose answers are not sent: a client may send one before it has the answers to those before. */
  underWay: number;
  /** When it began to wait, as a place in the order; undefined while it does not. */
  waitsSince: number | undefined;
  body: ComingBody | undefined;
}

/** The connections of one address. */
interface Neighbourhood {
  readonly address: string;
  readonly connections: Set<Connection>;
  waiting: number;
}

/**
 * Holds the connections of a server to limits. A connection waits while it is idle or has sent a part of a request. When
 * too many wait, the one that has waited longest is closed: a client that sends whole requests is never that one.
 *
 * @param refuse Answers a request that did not come in time, and closes its connection.
 */
export function guardConnections(
  server: Server,
  limits: ConnectionLimits,
  metrics: Metrics,
  refuse: (socket: Socket) => void,
): Connections {
  const { waitingMax, waitingPerAddressMax = waitingMax } = limits;
  const open = new Map<Socket, Connection>();
  const neighbourhoods = new Map<string, Neighbourhood>();
  let waiting = 0;
  let waits = 0;
  let isDispersing = false;

  const startsToWait = (connection: Connection) => {
    const { neighbourhood, socket } = connection;
    if (socket.destroyed) return;
    connection.waitsSince = waits += 1;
    waiting += 1;
    neighbourhood.waiting += 1;
    if (neighbourhood.waiting > waitingPerAddressMax || waiting > waitingMax) disperseSoon();
  };
  const stopsToWait = (connection: Connection) => {
    if (connection.waitsSince === undefined) return;
    connection.waitsSince = undefined;
    waiting -= 1;
    connection.neighbourhood.waiting -= 1;
  };

  const disperseSoon = () => {
    if (isDispersing) return;
    isDispersing = true;
    const last = waits;
    // In the turn of the event loop after that, what has come is read: a timer alone runs before it.
    setTimeout(() => setImmediate(disperse, last), waitsAtLeastMs).unref();
  };
  /** @param last The last to begin to wait of those that may be closed. */
  const disperse = (last: number) => {
    isDispersing = false;
    for (const { connections, waiting } of neighbourhoods.values())
      if (waiting > waitingPerAddressMax) closeLongest(connections, waitingPerAddressMax, last);
    if (waiting > waitingMax) closeLongest(open.values(), waitingMax, last);
  };
  const closeLongest = (connections: Iterable<Connection>, max: number, last: number) => {
    const longestFirst = [...connections].filter(isWaiting).toSorted((one, other) => one.waitsSince - other.waitsSince);
    const tooMany = longestFirst.slice(0, Math.max(0, longestFirst.length - max));
    if (tooMany.some(({ waitsSince }) => waitsSince > last)) disperseSoon();
    for (const connection of tooMany.filter(({ waitsSince }) => waitsSince <= last)) {
      metrics.countClosedConnection("too many without a request");
      stopsToWait(connection);
      connection.socket.destroy();
    }
  };

  server.on("connection", (socket: Socket) => {
    const address = networkOf(socket.remoteAddress);
    const neighbourhood = neighbourhoods.get(address) ?? { address, connections: new Set(), waiting: 0 };
    const connection = { socket, neighbourhood, underWay: 0, waitsSince: undefined, body: undefined };
    neighbourhoods.set(address, neighbourhood);
    neighbourhood.connections.add(connection);
    open.set(socket, connection);
    socket.once("close", () => {
      stopsToWait(connection);
      open.delete(socket);
      neighbourhood.connections.delete(connection);
      if (neighbourhood.connections.size === 0) neighbourhoods.delete(address);
    });
    startsToWait(connection);
  });
  const looking = setInterval(() => {
    const now = performance.now();
    for (const connection of open.values()) {
      const { body, socket } = connection;
      if (body === undefined) continue;
      const { incoming, response } = body;
      // Bytes that arrived and were not read are no fault of the client's.
      const keepsUp = incoming.readableLength > 0 || socket.bytesRead - body.bytesBefore >= bodyBytesMin;
      if (incoming.complete) connection.body = undefined;
      else if (now - body.since < stretchMs) continue;
      else if (keepsUp) {
        body.since = now;
        body.bytesBefore = socket.bytesRead;
      } else {
        metrics.countClosedConnection("a slow body");
        connection.body = undefined;
        if (response.headersSent) socket.destroy();
        else refuse(socket);
      }
    }
  }, lookEveryMs).unref();
  server.once("close", () => clearInterval(looking));

  return {
    begin: (incoming, response) => {
      const { socket } = incoming;
      const connection = open.get(socket);
      if (connection === undefined) return;
      connection.underWay += 1;
      if (hasBody(incoming))
        connection.body = { incoming, response, since: performance.now(), bytesBefore: socket.bytesRead };
      else stopsToWait(connection);
      response.on("close", () => {
        connection.underWay -= 1;
        if (connection.body?.incoming === incoming) connection.body = undefined;
        if (connection.underWay > 0) return;
        stopsToWait(connection);
        startsToWait(connection);
      });
    },
    accept: ({ socket }) => {
      const connection = open.get(socket);
      if (connection !== undefined) stopsToWait(connection);
    },
    takesItsTime: ({ socket }) => {
      const connection = open.get(socket);
      if (connection !== undefined) connection.body = undefined;
    },
  };
}

/** A body that has come whole leaves nothing to wait for. */
function isWaiting(connection: Connection): connection is Connection & { readonly waitsSince: number } {
  return connection.waitsSince !== undefined && connection.body?.incoming.complete !== true;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}
