import { type AnyContract, CatalogError, type RequestOf } from "@tiltyard/protocol";
import type { Context, Handler as HonoHandler } from "hono";
import { type Authenticator, authorize, type Principal } from "../auth/authenticator.ts";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import { credentialOfHeaders, credentialOfIdentity } from "./credential.ts";
import { respondWithError } from "./error-response.ts";
import type { Metrics } from "./metrics.ts";
import { envelopeOf, parseRequest, readJson } from "./parse-request.ts";
import type { RateLimit } from "./rate-limit.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";

export interface OperationParts {
  readonly catalog: Catalog;
  readonly authenticator: Authenticator;
  readonly rateLimit: RateLimit;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What is known of a request by the time that it is logged. */
interface Trail {
  /** The caller's, from a header before the body's context; undefined while there is none. */
  requestId: string | undefined;
  traceparent: string | undefined;
  principal: string | undefined;
}

/** Names a request that its caller gave no name. */
function requestIdIn(trail: Trail): string {
  trail.requestId ??= crypto.randomUUID();
  return trail.requestId;
}

/**
 * Serves one contract: authenticate, limit, parse, authorize, handle, respond, and then
 * one log line and one observation. Without a handler the answer is 406 once the caller's
 * rights are checked.
 */
export function serveOperation<C extends AnyContract>(
  contract: C,
  handler: Handler<C> | undefined,
  parts: OperationParts,
): HonoHandler {
  const { catalog, authenticator, rateLimit, metrics, log } = parts;

  async function respond(context: Context, trail: Trail): Promise<Response> {
    const credential = credentialOfHeaders((name) => context.req.header(name));
    const early = credential && (await authenticate(credential));
    const readsBody = context.req.method === "POST" && contract.content === "json";
    const body = readsBody ? await readJsonOf(context, early) : {};
    const envelope = envelopeOf(body);
    trail.requestId ??= requestIdOf(envelope.context?.["header.x-request-id"]);
    trail.traceparent ??= traceparentOf(envelope.context?.["header.traceparent"]);

    const principal = early ?? (await authenticate(credentialOfIdentity(envelope.identity ?? undefined)));
    const request = parseRequest(contract, context.req, body) as RequestOf<C>;
    authorize(principal, contract.access(request as never));
    if (handler === undefined)
      throw new CatalogError("Unsupported", `${contract.operationId} is not supported by this catalog`);
    const answer = await handler(request, catalog, { principal, requestId: requestIdIn(trail) });
    context.header("x-request-id", requestIdIn(trail));
    return answer === undefined ? context.body(null, contract.status) : context.json(answer, contract.status);

    async function authenticate(by: typeof credential): Promise<Principal> {
      const found = await authenticator.authenticate(by);
      trail.principal = found.name;
      await rateLimit(found.name);
      return found;
    }
  }

  return async (context) => {
    const start = performance.now();
    const trail: Trail = {
      requestId: requestIdOf(context.req.header("x-request-id")),
      traceparent: traceparentOf(context.req.header("traceparent")),
      principal: undefined,
    };
    let response: Response;
    try {
      response = await respond(context, trail);
    } catch (error) {
      response = respondWithError(context, error, requestIdIn(trail), log);
    }
    const durationMs = performance.now() - start;
    metrics.observeOperation(contract.operationId, response.status, durationMs);
    log.info({
      request_id: requestIdIn(trail),
      traceparent: trail.traceparent,
      principal: trail.principal,
      operation: contract.operationId,
      path: context.req.path,
      status: response.status,
      duration_ms: Math.round(durationMs * 1000) / 1000,
    });
    return response;
  };
}

/** Without a credential in the headers, a body that cannot be read is a request without a credential. */
async function readJsonOf(context: Context, principal: Principal | undefined): Promise<unknown> {
  try {
    return await readJson(context.req);
  } catch (error) {
    if (principal !== undefined || !(error instanceof CatalogError) || error.kind !== "InvalidInput") throw error;
    throw new CatalogError(
      "Unauthenticated",
      "no credential: the request has none in its headers, and its body cannot be read",
    );
  }
}
