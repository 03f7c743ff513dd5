import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../middleware/client-address.ts";

/** The delay before connections are evicted. Within it, the event loop reads requests that arrived while it was busy. */
const graceMs = 100;

export interface IdleLimits {
  /** The maximum number of idle connections of all clients together. */
  readonly idleMax: number;
  /** The maximum number of idle connections of each address; undefined means unlimited, for a service behind a proxy. */
  readonly idlePerAddressMax: number | undefined;
  readonly onEvict: () => void;
}

/**
 * Closes the longest idle connections if too many are idle. A connection is idle until the headers of a request have
 * arrived and again after the response, so active clients keep their connections.
 */
export function limitIdleConnections(server: Server, limits: IdleLimits): void {
  const { idleMax, idlePerAddressMax = idleMax, onEvict } = limits;
  /** The idle connections, in the order in which they became idle. */
  const idle = new Set<Connection>();
  const idleOf = new Map<string, Set<Connection>>();
  const connectionOf = new WeakMap<Socket, Connection>();
  let isEvicting = false;

  const becomeIdle = (connection: Connection) => {
    if (connection.socket.destroyed) return;
    const neighbours = idleOf.get(connection.network) ?? new Set();
    idleOf.set(connection.network, neighbours.add(connection));
    idle.add(connection);
    if (isEvicting || (idle.size <= idleMax && neighbours.size <= idlePerAddressMax)) return;
    isEvicting = true;
    // A timer runs before the event loop reads new data; an immediate runs after it.
    setTimeout(() => setImmediate(evict), graceMs).unref();
  };
  const becomeBusy = (connection: Connection) => {
    idle.delete(connection);
    const neighbours = idleOf.get(connection.network);
    neighbours?.delete(connection);
    if (neighbours?.size === 0) idleOf.delete(connection.network);
  };
  const evict = () => {
    isEvicting = false;
    for (const neighbours of [...idleOf.values()]) evictLongestIdle(neighbours, idlePerAddressMax);
    evictLongestIdle(idle, idleMax);
  };
  const evictLongestIdle = (connections: ReadonlySet<Connection>, max: number) => {
    for (const connection of [...connections].slice(0, Math.max(0, connections.size - max))) {
      becomeBusy(connection);
      connection.socket.destroy();
      onEvict();
    }
  };

  server.on("connection", (socket: Socket) => {
    const connection = { socket, network: networkOf(socket.remoteAddress), requests: 0 };
    connectionOf.set(socket, connection);
    becomeIdle(connection);
    socket.once("close", () => becomeBusy(connection));
  });
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = connectionOf.get(socket);
    if (connection === undefined) return;
    becomeBusy(connection);
    connection.requests += 1;
    response.once("close", () => {
      connection.requests -= 1;
      if (connection.requests === 0) becomeIdle(connection);
    });
  });
}

interface Connection {
  readonly socket: Socket;
  readonly network: string;
  /** The number of requests in progress. */
  requests: number;
}
