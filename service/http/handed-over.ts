import { createServer, type Server, type ServerResponse } from "node:http";
import { listenForOthers } from "../processes/writer-socket.ts";
import type { AddressOf } from "./address.ts";
import type { Connections } from "./connections.ts";
import type { Serve } from "./exchange.ts";
import { answer } from "./server.ts";

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

/** Takes what other processes of this service hand over. */
export async function listenForHandedOver(socketPath: string, serve: Serve, connections: Connections): Promise<Server> {
  // The process that took a request limits its time.
  const server = createServer({ requireHostHeader: false, requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  answer(server, serve, connections);
  await listenForOthers(server, socketPath);
  return server;
}
