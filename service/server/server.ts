import { once } from "node:events";
import { createServer, type IncomingMessage, maxHeaderSize, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { CatalogError } from "@tiltyard/protocol";
import type { Hono } from "hono";
import type { AppEnv } from "../http/context.ts";
import { type IdleLimits, limitIdleConnections } from "./idle-connections.ts";

const headersTimeoutMs = 10_000;
/** The timeout of a request. A long stream of rows arrives only as fast as its rows are computed. */
const requestTimeoutMs = 3_600_000;
/**
 * The time for which an idle connection stays open. It is longer than that of the clients, of reqwest (90 s), and of the load
 * balancers of AWS (60 s) and Google (600 s). A shorter one closes connections under their requests. The number of idle
 * connections is limited separately.
 */
const keepAliveMs = 620_000;
const timeoutCheckMs = 1_000;
/** The time for which accepted requests may continue while the service stops. */
const drainMs = 25_000;
const closeIdleEveryMs = 50;
/** The time for which a client can read the response to an invalid HTTP request. */
const lingerMs = 1_000;

/** Creates the Node server of an app. Node's own rejections are rendered in the error format of the service. */
export function createHttpServer(app: Hono<AppEnv>, idle: IdleLimits): Server {
  const listener = getRequestListener(app.fetch, {
    // The middleware `drainBody` replaces this feature and allows more time for long bodies.
    autoCleanupIncoming: false,
    errorHandler: () => Response.json(invalidRequest(), { status: 400 }),
  });
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    // A client that reuses its connection would delay the shutdown.
    if (!server.listening) outgoing.shouldKeepAlive = false;
    const problem = problemOf(incoming);
    if (problem === undefined) return listener(incoming, outgoing);
    const body = JSON.stringify(invalidRequest(problem));
    outgoing
      .writeHead(400, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
      .end(body);
  };
  const server = createServer(
    {
      requireHostHeader: false,
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: timeoutCheckMs,
    },
    serve,
  );
  server.on("checkExpectation", serve);
  server.on("clientError", refuseInvalidRequest);
  server.on("timeout", closeUnlessRequested);
  limitIdleConnections(server, idle);
  return server;
}

/** Matches a path with a segment that URLs resolve like a folder. Its request would call another operation. */
const dotSegment = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;

/** Returns the reason for which a request is refused; undefined for a valid one. */
function problemOf({ rawHeaders, url = "" }: IncomingMessage): string | undefined {
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host");
  if (hosts.length !== 1) return "the request must have one Host header";
  return dotSegment.test(url) ? "the path has a segment . or .., which no object has as its name" : undefined;
}

/** Starts listening. @returns The URL of the server. @throws Error of the system, such as EADDRINUSE. */
export async function listen(server: Server, { host, port }: { readonly host: string; readonly port: number }) {
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}

/** Stops listening, waits for requests in progress, and aborts those that last too long. */
export async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // Clients keep their connections open after the last response, which would delay the shutdown.
  const idle = setInterval(() => server.closeIdleConnections(), closeIdleEveryMs);
  const overdue = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearInterval(idle);
  clearTimeout(overdue);
}

/** Closes an idle connection unless a request arrived during a pause: timers run before reads, immediates after. */
function closeUnlessRequested(socket: Socket): void {
  const { bytesRead } = socket;
  setImmediate(() => {
    if (socket.bytesRead === bytesRead) socket.destroy();
  });
}

/** Responds to a request that Node's parser rejected and closes the connection. */
function refuseInvalidRequest({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return;
  const body = JSON.stringify(invalidRequest(reasonOf(code)));
  const length = Buffer.byteLength(body);
  socket.end(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`,
  );
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

function reasonOf(code: string | undefined): string | undefined {
  if (code === "HPE_HEADER_OVERFLOW") return `the path and the headers have more than ${maxHeaderSize} bytes`;
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "the request did not arrive in time" : undefined;
}

function invalidRequest(reason = "the request is not valid HTTP") {
  return new CatalogError("InvalidInput", reason).toResponse("");
}
