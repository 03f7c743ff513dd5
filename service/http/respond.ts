import { type AnyContract, arrowTypeOf, remoteHeaders, remoteVersion } from "@tiltyard/protocol";
import type { Log } from "../log.ts";
import { RenderedJson } from "../operations/handler.ts";
import type { AppContext } from "./context.ts";

const ignoredHeader = "x-ignored-fields";

/** Renders the result of an operation as JSON, as a stream of rows or as an empty response. */
export function respond(c: AppContext, { response, status }: AnyContract, result: unknown, log: Log): Response {
  if (result === undefined) return send(c, null, status, { "content-length": "0" });
  const arrowType = arrowTypeOf(response);
  if (result instanceof ReadableStream && arrowType !== undefined)
    return send(c, closingConnection(result, c, log), status, { "content-type": arrowType });
  return respondJson(c, result, status);
}

export function respondJson(c: AppContext, json: unknown, status: number, headers: Headers = {}): Response {
  const text = json instanceof RenderedJson ? json.text : JSON.stringify(json);
  return send(c, text, status, { "content-type": "application/json", ...headers });
}

export function isRemoteClient(c: AppContext): boolean {
  return c.req.header(remoteHeaders.database) !== undefined;
}

type Headers = Readonly<Record<string, string>>;

/** Node sends plain headers as they are; Hono's own functions would create native `Headers` first. */
function send(c: AppContext, body: string | ReadableStream<Uint8Array> | null, status: number, headers: Headers) {
  const ignored = c.get("ignoredFields");
  return new Response(body, {
    status,
    headers: {
      ...headers,
      // A shared cache would return the response to callers with other keys or none.
      "cache-control": "no-store",
      "x-request-id": c.get("requestId"),
      ...(ignored && { [ignoredHeader]: ignored.join(", ") }),
      // LanceDB's remote client reads the version of the server.
      ...(isRemoteClient(c) && { [remoteHeaders.version]: remoteVersion }),
    },
  });
}

/** The time in which a client must receive a piece of rows. Longer ones have more, because a connection may be slow. */
const receiveMs = { base: 60_000, perKiB: 60 };

/**
 * Closes the connection after a failure in the middle of the rows, and of a client that stops reading them, because the
 * process that reads rows keeps its place until then. The status was already sent, so the client can detect the failure
 * only by the closed connection.
 */
function closingConnection(rows: ReadableStream<Uint8Array>, c: AppContext, log: Log): ReadableStream<Uint8Array> {
  const ids = { request_id: c.get("requestId") };
  const { outgoing } = c.env;
  const onStall = () => {
    log.warn(ids, "the client stopped reading the rows of its response");
    outgoing?.destroy();
  };
  async function* read() {
    try {
      for await (const piece of rows) {
        // The next piece is requested after this one was sent.
        const stalled = setTimeout(onStall, receiveMs.base + (piece.length / 1024) * receiveMs.perKiB);
        try {
          yield piece;
        } finally {
          clearTimeout(stalled);
        }
      }
    } catch (cause) {
      if (c.req.raw.signal.aborted) return;
      c.set("hasFailedRows", true);
      log.error({ ...ids, err: cause }, "the rows of a response broke off");
      if (outgoing === undefined) throw cause;
      outgoing.destroy();
    }
  }
  return ReadableStream.from(read());
}
