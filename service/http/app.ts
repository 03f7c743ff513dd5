import { type AnyContract, CatalogError, remoteHeaders, remoteVersion } from "@tiltyard/protocol";
import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import { methodNotAllowed } from "hono/method-not-allowed";
import { requestId } from "hono/request-id";
import type { Log } from "../log.ts";
import type { Catalog } from "../operations/handler.ts";
import { operations } from "../operations.ts";
import { type PageDeps, pages } from "../pages/pages.ts";
import type { Store } from "../store/store.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { handle } from "./handle.ts";
import { accessLog } from "./middleware/access-log.ts";
import { type AuthenticationDeps, authenticate } from "./middleware/authenticate.ts";
import { authorizeFields, authorizePath, refuseRows } from "./middleware/authorize.ts";
import { type BodyMemory, bodyMemory } from "./middleware/body-memory.ts";
import { contextHeaders } from "./middleware/context-headers.ts";
import { drainBody } from "./middleware/drain-body.ts";
import { errorHandler, errorResponse } from "./middleware/error-handler.ts";
import { rateLimit } from "./middleware/rate-limit.ts";
import { target } from "./middleware/target.ts";
import { validate } from "./middleware/validate.ts";
import { oauthToken, tokenPath } from "./oauth-token.ts";
import { suggestedPath } from "./suggested-path.ts";

const requestIdLengthMax = 128;

export interface AppDeps extends AuthenticationDeps, PageDeps {
  readonly catalog: Catalog;
  readonly createLimiter: Store["createLimiter"];
  /** The maximum number of requests per second for each principal; undefined means unlimited. */
  readonly requestsPerSecond: number | undefined;
  readonly bodyMemory: BodyMemory;
  /** Interprets the database name of LanceDB's remote client as a namespace of this catalog. */
  readonly remoteDatabases: boolean;
  readonly log: Log;
}

/** Creates the service. The steps of a request are listed in the order in which they run. */
export function createApp(deps: AppDeps): Hono<AppEnv> {
  const app = new Hono<AppEnv>({ getPath: encodedPath });
  app.use(
    requestId({ limitLength: requestIdLengthMax }),
    accessLog(deps),
    drainBody(),
    methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }),
    bodyMemory(deps.bodyMemory),
  );
  const { requestsPerSecond } = deps;
  const limitRate = requestsPerSecond === undefined ? [] : [rateLimit(deps.createLimiter, requestsPerSecond)];
  for (const operation of operations) {
    const { contract } = operation;
    app.on(
      [...contract.methods],
      routePath(contract),
      labelOperation(contract),
      authenticate(deps),
      ...limitRate,
      target(deps),
      authorizePath(contract),
      ...(contract.onRows && !deps.catalog.dataOperations ? [refuseRows] : []),
      ...validate(contract),
      contextHeaders(),
      authorizeFields(contract),
      handle(operation, deps),
    );
  }
  if (deps.developmentIssuer !== undefined) app.on("POST", [tokenPath], ...oauthToken(deps.developmentIssuer, deps));
  app.route("/", pages(deps, tokenPath));
  app.notFound((c) => errorResponse(c, nothingAt(c)));
  app.onError(errorHandler(deps.log));
  return app;
}

/** Converts a path of the protocol to Hono's syntax: `/v1/table/{id}/describe` becomes `/v1/table/:id/describe`. */
export function routePath({ path }: AnyContract): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

/**
 * Returns the path in its encoded form, so that only the paths of the protocol match. Lance's Rust client encodes a
 * space as a plus; every client encodes a plus as `%2B`.
 */
function encodedPath({ url }: Request): string {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.indexOf("?", start);
  return (end === -1 ? url.slice(start) : url.slice(start, end)).replaceAll("+", "%20");
}

/** Sets the name of the operation for the log and the metrics, and the server's version for LanceDB's remote client. */
function labelOperation({ operationId }: AnyContract) {
  return createMiddleware<AppEnv>(async function labelOperation(c, next) {
    c.set("operation", operationId);
    if (isRemoteClient(c)) c.header(remoteHeaders.version, remoteVersion);
    await next();
  });
}

function isRemoteClient(c: AppContext): boolean {
  return c.req.header(remoteHeaders.database) !== undefined;
}

/** Creates the error of an unknown path. LanceDB's client interprets any 404 as a missing table, so it receives a 406. */
function nothingAt(c: AppContext): CatalogError {
  const { method, path } = c.req;
  if (isRemoteClient(c)) return new CatalogError("Unsupported", `this catalog has no operation ${method} ${path}`);
  const suggested = suggestedPath(path);
  const advice = suggested === undefined ? "GET /docs lists all operations" : `did you mean ${suggested}?`;
  return new CatalogError("RouteNotFound", `no operation has the path ${path}; ${advice}`);
}

function refuseMethod(c: AppContext, methods: readonly string[]): Response {
  c.header("allow", methods.join(", "));
  const message = `${c.req.method} is not allowed here: use ${methods.join(" or ")}`;
  return errorResponse(c, new CatalogError("MethodNotAllowed", message));
}
