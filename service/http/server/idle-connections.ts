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
  const idle = new Set<Socket>();
  const idleOf = new Map<string, Set<Socket>>();
  const requestsOf = new WeakMap<Socket, number>();
  let isEvicting = false;

  const becomeIdle = (socket: Socket) => {
    if (socket.destroyed) return;
    const address = networkOf(socket.remoteAddress);
    const neighbours = idleOf.get(address) ?? new Set();
    idleOf.set(address, neighbours.add(socket));
    idle.add(socket);
    if (isEvicting || (idle.size <= idleMax && neighbours.size <= idlePerAddressMax)) return;
    isEvicting = true;
    // A timer runs before the event loop reads new data; an immediate runs after it.
    setTimeout(() => setImmediate(evict), graceMs).unref();
  };
  const becomeBusy = (socket: Socket) => {
    idle.delete(socket);
    const address = networkOf(socket.remoteAddress);
    const neighbours = idleOf.get(address);
    neighbours?.delete(socket);
    if (neighbours?.size === 0) idleOf.delete(address);
  };
  const evict = () => {
    isEvicting = false;
    for (const neighbours of [...idleOf.values()]) evictLongestIdle(neighbours, idlePerAddressMax);
    evictLongestIdle(idle, idleMax);
  };
  const evictLongestIdle = (sockets: ReadonlySet<Socket>, max: number) => {
    for (const socket of [...sockets].slice(0, Math.max(0, sockets.size - max))) {
      becomeBusy(socket);
      socket.destroy();
      onEvict();
    }
  };

  server.on("connection", (socket: Socket) => {
    becomeIdle(socket);
    socket.once("close", () => becomeBusy(socket));
  });
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    becomeBusy(socket);
    requestsOf.set(socket, (requestsOf.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const requests = (requestsOf.get(socket) ?? 1) - 1;
      requestsOf.set(socket, requests);
      if (requests === 0) becomeIdle(socket);
    });
  });
}
