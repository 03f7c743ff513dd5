import { type AnyContract, arrowTypeOf, bodies, CatalogError, type RequestOf } from "@tiltyard/protocol";
import type { Context, Handler as HonoHandler } from "hono";
import { type Authenticator, authorize, type Credential, type Principal } from "../auth/authenticator.ts";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import type { AddressOf } from "./address.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { Connections } from "./connections.ts";
import { credentialOfHeaders, credentialOfIdentity } from "./credential.ts";
import { respondWithError } from "./error-response.ts";
import type { FailedCredentials } from "./failed-credentials.ts";
import { incomingOf } from "./incoming.ts";
import type { LoopWatch } from "./loop-delay.ts";
import type { Metrics } from "./metrics.ts";
import { createRequestParser, envelopeOf, type ParsedPath } from "./parse-request.ts";
import type { RateLimit } from "./rate-limit.ts";
import { readJson } from "./read-body.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";
import { followRows } from "./sent-rows.ts";

/** How much of a stream of rows is still taken once it is refused. */
const discardedBytesMax = 512 * 1024 * 1024;

/** How rows are counted and logged that broke off after the client was sent 200. */
const statusOfFailure = 500;
const brokenOff = "the rows of an answer could not be read to their end: the connection was broken off";

export interface OperationParts {
  readonly catalog: Catalog;
  readonly authenticator: Authenticator;
  readonly rateLimit: RateLimit;
  readonly failedCredentials: FailedCredentials;
  readonly addressOf: AddressOf;
  readonly bodyMemory: BodyMemory;
  readonly connections: Connections;
  readonly loopWatch: LoopWatch;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What is known of a request by the time that it is logged. */
interface Trail {
  readonly operation: string;
  /** The caller's, from a header before the body's context; undefined while there is none. */
  requestId: string | undefined;
  traceparent: string | undefined;
  principal: string | undefined;
  bodyBytes: number;
}

/** Names a request that its caller gave no name. */
function requestIdIn(trail: Trail): string {
  trail.requestId ??= crypto.randomUUID();
  return trail.requestId;
}

/**
 * Serves one contract: authenticate, limit, authorize, read, parse, authorize what the body is about, handle, respond,
 * and then one log line and one observation. What the path and the headers tell comes before the body is read.
 */
export function serveOperation<C extends AnyContract>(
  contract: C,
  handler: Handler<C>,
  parts: OperationParts,
): HonoHandler {
  const { catalog, bodyMemory, connections, rateLimit, metrics, loopWatch, log } = parts;
  const parser = createRequestParser(contract);

  async function respond(context: Context, trail: Trail): Promise<Response> {
    const credential = credentialOfHeaders((name) => context.req.header(name));
    const early = credential && (await admit(credential));
    using lease = bodyMemory.lease({ isAnonymous: early === undefined });
    const body = await readBody();
    const envelope = envelopeOf(body);
    trail.requestId ??= requestIdOf(envelope.context?.["header.x-request-id"]);
    trail.traceparent ??= traceparentOf(envelope.context?.["header.traceparent"]);

    const { principal, path } = early ?? (await admit(credentialOfIdentity(envelope.identity ?? undefined)));
    const request = parser.body(path, body) as RequestOf<C>;
    authorize(principal, contract.bodyAccess(request as never));
    const rows = contract.content === "arrow" ? (context.req.raw.body ?? emptyStream()) : noRows;
    const answer = await handler(request, catalog, { principal, requestId: requestIdIn(trail), body: rows });
    return respondWith(answer, contract, requestIdIn(trail));

    /** Lets a caller in that may do what the path says. */
    async function admit(by: Credential | undefined): Promise<{ principal: Principal; path: ParsedPath }> {
      const principal = await authenticate(by, context, parts);
      trail.principal = principal.name;
      await rateLimit(principal.name);
      const path = parser.path(context.req);
      authorize(principal, contract.access(path));
      if (contract.onRows && !catalog.dataOperations)
        throw new CatalogError(
          "Unsupported",
          "this catalog does no operations on rows (TILTYARD_DATA_OPERATIONS=off): open the table at its location",
        );
      const incoming = incomingOf(context);
      connections.accept(incoming);
      // Rows come as fast as they are computed.
      if (contract.content === "arrow") connections.takesItsTime(incoming);
      return { principal, path };
    }

    async function readBody(): Promise<unknown> {
      if (context.req.method !== "POST" || contract.content !== "json") return {};
      try {
        return await readJson(context, early === undefined ? bodies.small : bodies[contract.bodySize], lease);
      } catch (error) {
        if (early !== undefined || !(error instanceof CatalogError) || error.kind !== "InvalidInput") throw error;
        throw new CatalogError(
          "Unauthenticated",
          "no credential: the request has none in its headers, and its body cannot be read",
        );
      } finally {
        trail.bodyBytes = lease.bytes;
      }
    }
  }

  return async (context) => {
    const start = performance.now();
    const trail: Trail = {
      operation: contract.operationId,
      requestId: requestIdOf(context.req.header("x-request-id")),
      traceparent: traceparentOf(context.req.header("traceparent")),
      principal: undefined,
      bodyBytes: 0,
    };
    loopWatch.begin(trail);
    let response: Response;
    try {
      response = await respond(context, trail);
    } catch (error) {
      response = respondWithError(context, error, requestIdIn(trail), log);
    }
    if (contract.content === "arrow") await discard(context.req.raw.body);
    loopWatch.end(trail);
    const observe = (status: number) => {
      const durationMs = performance.now() - start;
      metrics.observeOperation(contract.operationId, status, durationMs);
      log.info({
        request_id: requestIdIn(trail),
        traceparent: trail.traceparent,
        principal: trail.principal,
        operation: contract.operationId,
        path: context.req.path,
        status,
        duration_ms: Math.round(durationMs * 1000) / 1000,
      });
    };
    if (arrowTypeOf(contract.response) !== undefined && response.ok && response.body !== null) {
      const rows = followRows(context, response.body, (failure) => {
        if (failure !== undefined) log.error({ err: failure.cause, request_id: requestIdIn(trail) }, brokenOff);
        observe(failure === undefined ? response.status : statusOfFailure);
      });
      return new Response(rows, response);
    }
    observe(response.status);
    return response;
  };
}

/** A client that is still sending its rows reads no answer: most of what comes is taken, and thrown away. */
async function discard(rows: ReadableStream<Uint8Array> | null): Promise<void> {
  if (rows === null || rows.locked) return;
  let left = discardedBytesMax;
  try {
    for await (const { length } of rows) {
      left -= length;
      if (left < 0) break;
    }
  } catch {
    // The client has given up.
  }
}

function emptyStream(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.close() });
}

/** For operations that take no rows, and so do not read it. */
const noRows = emptyStream();

/** Plain headers go out as they are; those of `context.json` would become a `Headers` object and be read from it again. */
function respondWith(answer: unknown, { status, response }: AnyContract, requestId: string): Response {
  const arrowType = arrowTypeOf(response);
  const headers = { "x-request-id": requestId };
  if (answer === undefined) return new Response(null, { status, headers });
  if (answer instanceof ReadableStream && arrowType !== undefined)
    return new Response(answer, { status, headers: { "content-type": arrowType, ...headers } });
  return new Response(JSON.stringify(answer), { status, headers: { "content-type": "application/json", ...headers } });
}

/** @throws CatalogError Unauthenticated, or Throttling where too many credentials came from that were refused. */
export async function authenticate(
  credential: Credential | undefined,
  context: Context,
  {
    authenticator,
    failedCredentials,
    addressOf,
  }: Pick<OperationParts, "authenticator" | "failedCredentials" | "addressOf">,
): Promise<Principal> {
  try {
    return await authenticator.authenticate(credential);
  } catch (error) {
    const isRefused = error instanceof CatalogError && error.kind === "Unauthenticated" && credential !== undefined;
    if (!isRefused) throw error;
    return failedCredentials.refuse(addressOf(incomingOf(context)), error);
  }
}
