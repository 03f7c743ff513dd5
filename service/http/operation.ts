import { type AnyContract, arrowTypeOf, contracts, type RequestOf, remoteContracts } from "@tiltyard/protocol";
import type { Handler as HonoHandler, MiddlewareHandler } from "hono";
import { type Authenticator, authorize, type Principal } from "../auth/authenticator.ts";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import type { AddressOf } from "./address.ts";
import { admitByHeaders, admitByIdentity } from "./admit.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { Connections } from "./connections.ts";
import type { FailedCredentials } from "./failed-credentials.ts";
import type { LoopWatch } from "./loop-delay.ts";
import type { Metrics } from "./metrics.ts";
import { type Envelope, readBody } from "./operation-body.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RequestPath } from "./request-path.ts";
import { leaveTrail, requestIdIn, type Trail } from "./trail.ts";
import { requestIn, type ValidatedInput, validateBody, validateQuery } from "./validate.ts";

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

/** What the steps of one request hand on. */
export interface OperationEnv {
  Variables: {
    readonly trail: Trail;
    /** Whether the body is an Arrow stream. */
    readonly takesRows: boolean;
    /** From the step that admits the caller on. */
    readonly principal: Principal | undefined;
    readonly path: RequestPath;
    readonly envelope: Envelope;
    /** Parsed, and not validated. */
    readonly body: unknown;
  };
}

/**
 * One step of a request. It sets the answer, or calls the steps behind it. An error that it throws skips those, and the
 * first step answers it.
 */
export type Step = MiddlewareHandler<OperationEnv>;

/**
 * Makes one handler of steps. Hono's own composition makes two promises and catches errors for each of them, which costs
 * more than the steps do.
 */
export function inOrder(steps: readonly Step[]): HonoHandler<OperationEnv> {
  return async (context) => {
    // No step uses what `next` resolves to, as Hono's type says; passing the promise on spares another one.
    const run = (index: number): Promise<void> => steps[index]?.(context, () => run(index + 1)) as Promise<void>;
    await run(0);
    return context.res;
  };
}

/**
 * Serves one contract, step by step. Path and headers are checked before the body is read; only a caller without a
 * credential in the headers is admitted by its body.
 */
export function serveOperation<C extends AnyContract>(
  contract: C,
  handler: Handler<C>,
  parts: OperationParts,
): readonly Step[] {
  return [
    leaveTrail(contract, parts),
    admitByHeaders(contract, parts),
    readBody(contract, parts),
    admitByIdentity(contract, parts),
    validateQuery(contract),
    validateBody(contract),
    handle(contract, handler, parts),
  ];
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

/** Authorizes the objects in query and body, carries out the operation and sets the answer. */
function handle<C extends AnyContract>(
  contract: C,
  handler: Handler<C>,
  { catalog }: OperationParts,
): MiddlewareHandler<OperationEnv, string, ValidatedInput> {
  const isMemoized = memoized.includes(contract);
  return async (context) => {
    const path = context.get("path");
    const principal = context.get("principal");
    const trail = context.get("trail");
    if (principal === undefined) throw new Error("a request reached its operation without a principal");
    const request = requestIn(context.req, path) as RequestOf<C>;
    authorize(principal, contract.bodyAccess(request as never));
    const rows = context.get("takesRows") ? (context.req.raw.body ?? emptyStream()) : noRows;
    const requestId = requestIdIn(trail);
    const carryOut = () => handler(request, catalog, { principal, requestId, body: rows });
    if (isMemoized) {
      const key = JSON.stringify([contract.path, request]);
      const json = await catalog.store.memoized(key, async () => JSON.stringify(await carryOut()));
      context.res = respondWithJson(json, contract, requestId);
    } else context.res = respond(await carryOut(), contract, requestId);
  };
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
