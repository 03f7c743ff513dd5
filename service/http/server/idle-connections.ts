import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../middleware/client-address.ts";

/** Requests that arrived while the event loop was busy are read within this time, before connections are evicted. */
const graceMs = 100;

export interface IdleLimits {
  /** Idle connections of all clients together. */
  readonly idleMax: number;
  /** Idle connections of one address; undefined is no limit, for a service behind a proxy. */
  readonly idlePerAddressMax: number | undefined;
  readonly onEvict: () => void;
}

/**
 * Closes the connections that have been idle the longest when there are too many. A connection is idle until the
 * headers of a request have arrived, and again after the response, so that a client that sends requests is kept.
 */
export function limitIdleConnections(server: Server, limits: IdleLimits): void {
  const { idleMax, idlePerAddressMax = idleMax, onEvict } = limits;
  /** In the order in which they became idle. */
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
    // A timer runs before the event loop reads what has arrived; an immediate runs after it.
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
