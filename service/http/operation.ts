import { type AnyContract, arrowTypeOf, contracts, type RequestOf, remoteContracts } from "@tiltyard/protocol";
import type { Handler as HonoHandler } from "hono";
import { type Authenticator, authorize } from "../auth/authenticator.ts";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import type { AddressOf } from "./address.ts";
import { createAdmission } from "./admit.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { Connections } from "./connections.ts";
import { credentialOfHeaders, credentialOfIdentity } from "./credential.ts";
import type { FailedCredentials } from "./failed-credentials.ts";
import type { LoopWatch } from "./loop-delay.ts";
import type { Metrics } from "./metrics.ts";
import { readBody } from "./operation-body.ts";
import type { RateLimit } from "./rate-limit.ts";
import { leaveTrail, requestIdIn } from "./trail.ts";
import { createRequestReader } from "./validate.ts";

export interface OperationParts {
  readonly catalog: Catalog;
  readonly authenticator: Authenticator;
  readonly rateLimit: RateLimit;
  readonly failedCredentials: FailedCredentials;
  readonly addressOf: AddressOf;
  readonly bodyMemory: BodyMemory;
  readonly connections: Connections;
  readonly loopWatch: LoopWatch;
  /** Whether the database that LanceDB's remote client names is the namespace that it is in. */
  readonly remoteDatabases: boolean;
  readonly metrics: Metrics;
  readonly log: Log;
}

/**
 * Long lists that depend on the database alone, and are the same for each authorized caller. Each is made once until the
 * next commit.
 */
const memoized: readonly AnyContract[] = [
  contracts.listNamespaces,
  contracts.listTables,
  contracts.listAllTables,
  remoteContracts.remoteListTables,
];

/**
 * Serves one contract. Path and headers are checked before the body is read; only a caller without a credential in the
 * headers is admitted by its body.
 */
export function serveOperation<C extends AnyContract>(
  contract: C,
  handler: Handler<C>,
  parts: OperationParts,
): HonoHandler {
  const { catalog, bodyMemory } = parts;
  const admit = createAdmission(contract, parts);
  const readRequest = createRequestReader(contract);
  const isMemoized = memoized.includes(contract);

  return leaveTrail(contract, parts, async (context, trail) => {
    const credential = credentialOfHeaders((name) => context.req.header(name));
    const byHeaders = credential && (await admit(context, credential, trail));
    const isAnonymous = byHeaders === undefined;
    // The memory that the body takes is accounted for until the request is answered.
    using lease = bodyMemory.lease({ isAnonymous });
    const { body, identity } = await readBody(context, contract, trail, { lease, isAnonymous });
    const { principal, path } = byHeaders ?? (await admit(context, credentialOfIdentity(identity), trail));

    const request = readRequest(context.req, path, body) as RequestOf<C>;
    authorize(principal, contract.bodyAccess(request as never));
    const rows = trail.takesRows ? (context.req.raw.body ?? emptyStream()) : noRows;
    const requestId = requestIdIn(trail);
    const carryOut = () => handler(request, catalog, { principal, requestId, body: rows });
    if (!isMemoized) return respond(await carryOut(), contract, requestId);
    const key = JSON.stringify([contract.path, request]);
    const json = await catalog.store.memoized(key, async () => JSON.stringify(await carryOut()));
    return respondWithJson(json, contract, requestId);
  });
}

function emptyStream(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.close() });
}

/** For operations that take no rows, and so do not read it. */
export const noRows = emptyStream();

/** Plain headers go out as they are; those of `context.json` would become a `Headers` object and be read from it again. */
function respondWithJson(json: string, { status }: AnyContract, requestId: string): Response {
  return new Response(json, { status, headers: { "content-type": "application/json", "x-request-id": requestId } });
}

function respond(answer: unknown, contract: AnyContract, requestId: string): Response {
  const { status, response } = contract;
  const arrowType = arrowTypeOf(response);
  const headers = { "x-request-id": requestId };
  if (answer === undefined) return new Response(null, { status, headers });
  if (answer instanceof ReadableStream && arrowType !== undefined)
    return new Response(answer, { status, headers: { "content-type": arrowType, ...headers } });
  return respondWithJson(JSON.stringify(answer), contract, requestId);
}
