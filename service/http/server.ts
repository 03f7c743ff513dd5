import { createServer, maxHeaderSize, type Server } from "node:http";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { CatalogError, type ErrorResponse } from "@tiltyard/protocol";
import { type Connections, headersTimeoutMs } from "./connections.ts";
import { exchangeOf, type Serve } from "./exchange.ts";
import { createTurns } from "./turns.ts";

/** How long requests that were accepted may take to finish once the service is told to stop. */
const drainMs = 25_000;
const closeIdleEveryMs = 50;
/** How long a client may take to read that its request was no HTTP. */
const lingerMs = 1_000;
/** How often connections are checked for slow headers. */
const connectionsEveryMs = 1_000;
/** Node's own code for a request that does not come in time. */
const lateRequestCode = "ERR_HTTP_REQUEST_TIMEOUT";
/** How long a client may take to send a request: a long stream of rows takes its time. */
const requestTimeoutMs = 3_600_000;

export function createHttpServer(): Server {
  const server = createServer({
    requireHostHeader: false,
    requestTimeout: requestTimeoutMs,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: connectionsEveryMs,
  });
  // What Node and the adapter would refuse by an empty answer is refused by the error body.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.on("clientError", ({ code }: NodeJS.ErrnoException, socket: Socket) => answerBrokenRequest(socket, code));
  return server;
}

/** Has a server answer the requests that come to it. */
export function answer(server: Server, serve: Serve, connections: Pick<Connections, "begin">): void {
  const turnNow = createTurns();
  server.on("request", (incoming, response) => {
    connections.begin(incoming, response);
    // A client that keeps its connection busy would be served until it is ended.
    if (!server.listening) response.shouldKeepAlive = false;
    void serve(exchangeOf(incoming, response, turnNow()));
  });
}

/**
 * Stops listening, waits for requests in progress, and aborts those that take too long.
 *
 * @param others Hand the server connections.
 */
export async function close(server: Server, others: readonly NetServer[] = []): Promise<void> {
  const closed = Promise.all([server, ...others].map((each) => new Promise((resolve) => each.close(resolve))));
  // A client keeps its connection open after its last answer, which would delay the end.
  const idle = setInterval(() => server.closeIdleConnections(), closeIdleEveryMs);
  const overdue = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearInterval(idle);
  clearTimeout(overdue);
}

/**
 * Answers what is not HTTP, or comes too late, with the error body that all other errors have, and closes the connection.
 *
 * @param code Of Node's parser.
 */
function answerBrokenRequest(socket: Socket, code?: string): void {
  if (!socket.writable) return;
  const body = JSON.stringify(brokenRequest(code));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  // A client that does not read the answer, or goes on sending, has no claim to the connection.
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** Answers a request that did not come in time, and closes its connection. */
export function refuseLateRequest(socket: Socket): void {
  answerBrokenRequest(socket, lateRequestCode);
}

/** @param code Of Node's parser. */
export function brokenRequest(code?: string): ErrorResponse {
  let why = "the request is not valid HTTP";
  if (code === "HPE_HEADER_OVERFLOW") why = `the path and the headers have more than ${maxHeaderSize} bytes`;
  if (code === lateRequestCode) why = "the request did not come in time";
  return new CatalogError("InvalidInput", why).toResponse("");
}

export function urlOf(host: string, server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
