import { arrowTypeOf } from "@tiltyard/protocol";
import type { Handler } from "hono";
import type { Log } from "../log.ts";
import type { Catalog } from "../operations/handler.ts";
import type { Operation } from "../operations.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { principalOf } from "./middleware/authorize.ts";
import { openBody } from "./middleware/drain-body.ts";
import { isArrow } from "./middleware/json-body.ts";

/** Runs the handler of an operation and renders its result as JSON, as a stream of rows or as an empty response. */
export function handle(
  { contract, handler }: Operation,
  { catalog, log }: { readonly catalog: Catalog; readonly log: Log },
): Handler<AppEnv> {
  return async function handle(c) {
    const request: Readonly<Record<string, unknown>> = c.get("request");
    const body = isArrow(contract, c) ? openBody(c) : emptyStream;
    const result: unknown = await handler(request as never, catalog, {
      principal: principalOf(c),
      requestId: c.get("requestId"),
      body,
    });
    if (result === undefined) return c.body(null, contract.status, { "content-length": "0" });
    const arrowType = arrowTypeOf(contract.response);
    if (result instanceof ReadableStream && arrowType !== undefined)
      return c.body(reportingFailure(result, c, log), contract.status, { "content-type": arrowType });
    return c.json(result, contract.status);
  };
}

/** The stream of operations without rows, which never read it. */
const emptyStream = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });

/**
 * Logs a failure in the middle of the rows. The status was already sent, so the client can detect the failure only by
 * the closed connection.
 */
function reportingFailure(rows: ReadableStream<Uint8Array>, c: AppContext, log: Log): ReadableStream<Uint8Array> {
  async function* read() {
    try {
      yield* rows;
    } catch (cause) {
      c.set("hasFailedRows", true);
      log.error({ err: cause, request_id: c.get("requestId") }, "the rows of a response broke off");
      if (c.env.outgoing === undefined) throw cause;
      c.env.outgoing.destroy();
    }
  }
  return ReadableStream.from(read());
}
