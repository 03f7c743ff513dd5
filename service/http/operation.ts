import { setImmediate } from "node:timers/promises";
import { bodies, CatalogError } from "@tiltyard/protocol";
import type { MiddlewareHandler } from "hono";
import { createMiddleware } from "hono/factory";
import { authorize, kindInPath } from "../auth/authorize.ts";
import type { Log } from "../log.ts";
import type { Catalog } from "../operations/handler.ts";
import type { Operation } from "../operations.ts";
import type { Limiter } from "../store/store.ts";
import { applyContext } from "./access-log.ts";
import { type AuthenticationDeps, authenticate, countCall } from "./authenticate.ts";
import type { AppEnv } from "./context.ts";
import { openBody } from "./drain-body.ts";
import { isArrow, readText, refuseEncoding } from "./json-body.ts";
import { respond } from "./respond.ts";
import { readTarget } from "./target.ts";
import { joinFields, type ValidatedInput, validateBody, validateQuery } from "./validate.ts";

export interface OperationDeps extends AuthenticationDeps {
  readonly catalog: Catalog;
  /** Limits the requests of a principal; undefined means unlimited. */
  readonly rateLimiter: Limiter | undefined;
  /** Interprets the database name of LanceDB's remote client as a namespace of this catalog. */
  readonly remoteDatabases: boolean;
  readonly log: Log;
}

/** Returns the steps of an operation in the order in which they run. Rights are checked before the body is read. */
export function operationSteps({ contract, handler }: Operation, deps: OperationDeps): MiddlewareHandler<AppEnv>[] {
  const { catalog, bodyMemory, rateLimiter, remoteDatabases, log } = deps;
  const kind = kindInPath(contract.path);
  const isDisabled = contract.onRows && !catalog.dataOperations;

  const admit = createMiddleware<AppEnv>(async function admit(c, next) {
    c.set("operation", contract.operationId);
    try {
      // Node calls the service before it parses the body, which is usually in the same packet as the headers. Later, the
      // steps of the request run without a pause, and find what was committed before the request arrived (ReadCache).
      await setImmediate();
      const principal = await authenticate(c, deps);
      if (rateLimiter !== undefined) {
        const { name } = principal;
        await countCall(rateLimiter, name, `${name} may send ${rateLimiter.points} requests a second`);
      }
      const target = readTarget(c, remoteDatabases);
      authorize(principal, contract.access(target), kind);
      if (isDisabled)
        throw new CatalogError(
          "Unsupported",
          "this catalog serves no operations on rows (TILTYARD_DATA_OPERATIONS=off): open the table at its location",
        );
      refuseEncoding(c);
      if (!isArrow(contract, c)) await readText(c, bodies[contract.bodySize], bodyMemory, "authenticated");
      c.set("admitted", { principal, target });
      await next();
    } finally {
      c.get("releaseBody")?.();
    }
  });

  const answer = createMiddleware<AppEnv, string, ValidatedInput>(async function answer(c) {
    const { principal, target } = c.get("admitted");
    const request = joinFields(c, target, c.req.valid("query"), c.req.valid("json"));
    applyContext(c, request.context);
    authorize(principal, contract.bodyAccess(request), kind);
    const body = isArrow(contract, c) ? openBody(c, "rows") : emptyStream;
    const { operationId: operation } = contract;
    const { delimiter } = target;
    const caller = { operation, principal, requestId: c.get("requestId"), delimiter, signal: c.req.raw.signal, body };
    const result = await handler(request, catalog, caller);
    return respond(c, contract, result, log);
  });

  return [admit, validateQuery(contract), validateBody(contract), answer];
}

/** The stream of operations without rows, which never read it. */
const emptyStream = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
