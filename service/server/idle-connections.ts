import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../http/client-address.ts";

/** The delay before connections are evicted. Within it, the event loop reads requests that arrived while it was busy. */
const graceMs = 100;

/** The idle time after which a connection without any request so far does not delay the end of the server. */
const unusedMs = 1_000;

export interface IdleLimits {
  readonly idleMax: number;
  /** The maximum number of idle connections of each address; undefined means unlimited, for a service behind a proxy. */
  readonly idlePerAddressMax: number | undefined;
  readonly onEvict: () => void;
}

/**
 * Closes the longest idle connections if too many are idle, and those without any request when the server ends. A
 * connection is idle until the headers of a request have arrived and again after the response, so active clients keep
 * their connections.
 */
export function limitIdleConnections(server: Server, limits: IdleLimits): void {
  const { idleMax, idlePerAddressMax = idleMax, onEvict } = limits;
  /** The idle connections, in the order in which they became idle. */
  const idle = new Set<Connection>();
  const connectionOf = new WeakMap<Socket, Connection>();
  let isEvicting = false;

  const becomeIdle = (connection: Connection) => {
    if (connection.socket.destroyed) return;
    idle.add(connection);
    connection.idleSinceMs = performance.now();
    if (isEvicting || idle.size <= Math.min(idleMax, idlePerAddressMax)) return;
    isEvicting = true;
    // A timer runs before the event loop reads new data; an immediate runs after it.
    setTimeout(() => setImmediate(evict), graceMs).unref();
  };
  const evict = () => {
    isEvicting = false;
    const byNetwork = Map.groupBy(idle, ({ network }) => network);
    for (const neighbours of byNetwork.values()) evictLongestIdle(neighbours, idlePerAddressMax);
    evictLongestIdle([...idle], idleMax);
  };
  const evictLongestIdle = (connections: readonly Connection[], max: number) => {
    for (const connection of connections.slice(0, Math.max(0, connections.length - max))) {
      idle.delete(connection);
      connection.socket.destroy();
      onEvict();
    }
  };

  const closeUsed = server.closeIdleConnections.bind(server);
  // Node's own method keeps connections without any request so far. Clients open such connections in advance.
  server.closeIdleConnections = () => {
    closeUsed();
    for (const { socket, idleSinceMs } of idle) if (performance.now() - idleSinceMs > unusedMs) socket.destroy();
  };

  server.on("connection", (socket: Socket) => {
    const connection = { socket, network: networkOf(socket.remoteAddress), requests: 0, idleSinceMs: 0 };
    connectionOf.set(socket, connection);
    becomeIdle(connection);
    socket.once("close", () => idle.delete(connection));
  });
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = connectionOf.get(socket);
    if (connection === undefined) return;
    idle.delete(connection);
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
  requests: number;
  /** The time of `performance.now()` at which the connection became idle. */
  idleSinceMs: number;
}
