import { chmodSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressOf } from "./address.ts";
import type { Connections } from "./connections.ts";
import { type Fetch, listen } from "./server.ts";

/** Where a request that is handed over comes from, as the process tells that took it. */
export const addressHeader = "x-tiltyard-address";

/** What the process that took a request tells of its address. */
export const addressHandedOver: AddressOf = ({ headers }) => String(headers[addressHeader] ?? "unknown");

/** Watches no connections: the process that took a request does, and is told when the caller may take time. */
export function connectionsHandedOver(): Connections {
  const responses = new WeakMap<object, ServerResponse>();
  return {
    begin: (incoming, response) => void responses.set(incoming, response),
    accept: (incoming) => {
      if (!incoming.complete) responses.get(incoming)?.writeProcessing();
    },
    takesItsTime: () => undefined,
  };
}

/**
 * Takes what other processes of this service hand over.
 *
 * @param socketPath In a folder that only this user may read. A socket left over there is replaced.
 */
export async function listenForHandedOver(socketPath: string, fetch: Fetch, connections: Connections): Promise<Server> {
  // How long a request may take is seen to where it is taken.
  const server = createServer({ requireHostHeader: false, requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  rmSync(socketPath, { force: true });
  // Not by way of the supervisor, which would keep what comes for a process that has ended.
  await listen(server, fetch, connections, { path: socketPath, exclusive: true });
  chmodSync(socketPath, 0o600);
  return server;
}
