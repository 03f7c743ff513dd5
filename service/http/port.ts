import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type ListenOptions, type Server } from "node:net";
import { codeOf } from "@tiltyard/protocol";

/**
 * Node accepts one connection of each listening socket in a turn of the event loop, and in a turn it answers all clients
 * that have sent something. A rush of new clients takes as many turns as it has clients, divided by this number.
 */
const socketsOnPort = 16;

/** Where a service listens; port 0 is any that is free. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Whether several sockets can listen on one port, and the kernel spreads connections over them. */
export function canShare(platform: NodeJS.Platform): boolean {
  return platform === "linux" || platform === "freebsd";
}

/** A port that is free for the sockets of one service, until it is disposed of. */
export interface ClaimedPort extends Disposable {
  readonly port: number;
}

/**
 * Claims a port. Sockets that share one do not detect another service on it: a socket that shares nothing is there for a
 * moment. Of two services that start in the same moment, one gets the name.
 *
 * @throws Error EADDRINUSE
 */
export async function claimPort(at: HostPort): Promise<ClaimedPort> {
  const probe = createServer();
  const port = await listenAt(probe, at);
  try {
    const name = await claimName({ ...at, port });
    return { port, [Symbol.dispose]: () => name?.close() };
  } finally {
    probe.close();
    await once(probe, "close");
  }
}

/**
 * Has an abstract socket, which Linux gives to one process alone and takes from it when it ends. A sandbox may allow none:
 * then the port is claimed without it.
 */
async function claimName({ host, port }: HostPort): Promise<Server | undefined> {
  if (process.platform !== "linux") return undefined;
  const name = createServer((socket) => socket.destroy()).unref();
  name.listen({ path: `\0tiltyard ${host}:${port}`, exclusive: true });
  try {
    await once(name, "listening");
    return name;
  } catch (cause) {
    if (codeOf(cause) !== "EADDRINUSE") return undefined;
    const taken = new Error(`listen EADDRINUSE: address already in use ${host}:${port}`, { cause });
    throw Object.assign(taken, { code: "EADDRINUSE" });
  }
}

/**
 * Has a server take the connections of a port, which other processes of this service may share.
 *
 * @returns Others that listen, and hand it the connections which they accept.
 */
export async function listenOnPort(server: HttpServer, at: HostPort): Promise<readonly Server[]> {
  if (!canShare(process.platform)) {
    await listenAt(server, at);
    return [];
  }
  const port = await listenAt(server, { ...at, reusePort: true });
  const others = Array.from({ length: socketsOnPort - 1 }, () =>
    // What Node's HTTP server sets for connections of its own.
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit("connection", socket)),
  );
  try {
    for (const other of others) await listenAt(other, { ...at, port, reusePort: true });
    return others;
  } catch (error) {
    for (const each of [server, ...others]) each.close();
    throw error;
  }
}

/** @returns The port. */
async function listenAt(server: Server, at: ListenOptions): Promise<number> {
  // Not by way of the supervisor.
  server.listen({ ...at, exclusive: true });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
