import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { type AnyContract, arrowTypeOf, contracts, type RequestOf, remoteContracts } from "@tiltyard/protocol";
import { type Authenticator, authorize } from "../auth/authenticator.ts";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import type { AddressOf } from "./address.ts";
import { createAdmission } from "./admit.ts";
import { type Answer, jsonAnswer } from "./answer.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { Connections } from "./connections.ts";
import { credentialOfHeaders, credentialOfIdentity } from "./credential.ts";
import type { Serve } from "./exchange.ts";
import type { FailedCredentials } from "./failed-credentials.ts";
import type { LoopWatch } from "./loop-delay.ts";
import type { Metrics } from "./metrics.ts";
import { readBody } from "./operation-body.ts";
import type { RateLimit } from "./rate-limit.ts";
import { type AnswerOfRows, leaveTrail, requestIdIn } from "./trail.ts";
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
export function serveOperation<C extends AnyContract>(contract: C, handler: Handler<C>, parts: OperationParts): Serve {
  const { catalog, bodyMemory } = parts;
  const admit = createAdmission(contract, parts);
  const readRequest = createRequestReader(contract);
  const isMemoized = memoized.includes(contract);

  return leaveTrail(contract, parts, async (exchange, trail) => {
    const credential = credentialOfHeaders(exchange);
    const byHeaders = credential && (await admit(exchange, credential, trail));
    const isAnonymous = byHeaders === undefined;
    // The memory that the body takes is accounted for until the request is answered.
    using lease = bodyMemory.lease({ isAnonymous });
    const { body, identity } = await readBody(exchange, contract, trail, { lease, isAnonymous });
    const { principal, path } = byHeaders ?? (await admit(exchange, credentialOfIdentity(identity), trail));

    const request = readRequest(exchange.query, path, body) as RequestOf<C>;
    authorize(principal, contract.bodyAccess(request as never));
    // Node's type of the stream has chunks of any type; those of a request are bytes.
    if (trail.takesRows) trail.rows = Readable.toWeb(exchange.incoming) as ReadableStream<Uint8Array>;
    const requestId = requestIdIn(trail);
    const carryOut = () => handler(request, catalog, { principal, requestId, body: trail.rows ?? noRows });
    if (!isMemoized) return answerOf(await carryOut(), contract, requestId);
    const key = JSON.stringify([contract.path, request]);
    const json = await catalog.store.memoized(key, async () => JSON.stringify(await carryOut()));
    return jsonAnswer(contract.status, json, { "x-request-id": requestId });
  });
}

/** For operations that take no rows, and so do not read it. */
export const noRows = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });

function answerOf(answered: unknown, { status, response }: AnyContract, requestId: string): Answer | AnswerOfRows {
  const headers: OutgoingHttpHeaders = { "x-request-id": requestId };
  if (answered === undefined) return { status, headers };
  const arrowType = arrowTypeOf(response);
  if (answered instanceof ReadableStream && arrowType !== undefined)
    return { status, headers: { "content-type": arrowType, ...headers }, rows: answered };
  return jsonAnswer(status, JSON.stringify(answered), headers);
}
