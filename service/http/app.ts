import { type AnyContract, CatalogError, closest, defaultDelimiter } from "@tiltyard/protocol";
import { Hono } from "hono";
import { methodNotAllowed } from "hono/method-not-allowed";
import { operations } from "../operations.ts";
import { type PageDeps, pages } from "../pages/pages.ts";
import type { Store } from "../store/store.ts";
import { type AccessLogDeps, accessLog } from "./access-log.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { drainBody } from "./drain-body.ts";
import { errorHandler, errorResponse } from "./error-handler.ts";
import { oauthToken, tokenPath } from "./oauth-token.ts";
import { type OperationDeps, operationSteps } from "./operation.ts";
import { isRemoteClient } from "./respond.ts";

export interface AppDeps extends Omit<OperationDeps, "rateLimiter">, PageDeps, AccessLogDeps {
  readonly createLimiter: Store["createLimiter"];
  /** The maximum number of requests per second for each principal; undefined means unlimited. */
  readonly requestsPerSecond: number | undefined;
}

/** Creates the service. The steps of a request are listed in the order in which they run. */
export function createApp(deps: AppDeps): Hono<AppEnv> {
  const { createLimiter, developmentIssuer, log, requestsPerSecond } = deps;
  const rateLimiter =
    requestsPerSecond === undefined ? undefined : createLimiter({ points: requestsPerSecond, durationSeconds: 1 });
  const app = new Hono<AppEnv>({ getPath: encodedPath });
  app.use(accessLog(deps), drainBody());
  for (const operation of operations) {
    const { contract } = operation;
    app.on([...contract.methods], [routePath(contract)], ...operationSteps(operation, { ...deps, rateLimiter }));
  }
  if (developmentIssuer !== undefined) app.on("POST", [tokenPath], ...oauthToken(developmentIssuer, deps));
  app.route("/", pages(deps, tokenPath));
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }));
  app.notFound((c) => errorResponse(c, nothingAt(c)));
  app.onError(errorHandler(log));
  return app;
}

/** Converts a path of the protocol to Hono's syntax: `/v1/table/{id}/describe` becomes `/v1/table/:id/describe`. */
export function routePath({ path }: AnyContract): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

/** Returns the encoded path, which identifiers cannot imitate. Lance's Rust client encodes a space as a plus. */
function encodedPath({ url }: Request): string {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.indexOf("?", start);
  return (end === -1 ? url.slice(start) : url.slice(start, end)).replaceAll("+", "%20");
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
  const message = `${c.req.method} is not allowed here: use ${methods.join(" or ")}`;
  return errorResponse(c, new CatalogError("MethodNotAllowed", message), { allow: methods.join(", ") });
}

/** Returns the path of an operation that an unknown path most likely means, or undefined if none is close. */
function suggestedPath(path: string): string | undefined {
  const suggestions = [withDelimiter, withoutTypo].flatMap((suggest) =>
    operations.map(({ contract }) => suggest(path, contract.path)),
  );
  return suggestions.find((suggested) => suggested !== undefined);
}

/** Replaces the slashes between the parts of an identifier, as in `/v1/table/demo/numbers/describe`. */
function withDelimiter(path: string, template: string): string | undefined {
  const [start = "", end = "", ...more] = template.split("{id}");
  const id = path.slice(start.length, path.length - end.length);
  const fits = path.startsWith(start) && path.endsWith(end) && /^[^/]+(?:\/[^/]+)+$/.test(id);
  return fits && end !== "" && more.length === 0 ? start + id.replaceAll("/", defaultDelimiter) + end : undefined;
}

/** Corrects a misspelled operation. Only the fixed segments are compared, because identifiers may be long. */
function withoutTypo(path: string, template: string): string | undefined {
  const given = path.split("/");
  const segments = template.split("/");
  if (segments.length !== given.length || given.slice(1).includes("")) return undefined;
  const isFixed = (index: number) => segments[index]?.startsWith("{") === false;
  const fixed = (each: readonly string[]) => each.filter((_, index) => isFixed(index)).join("/");
  if (closest(fixed(given), [fixed(segments)]) === undefined) return undefined;
  return segments.map((segment, index) => (isFixed(index) ? segment : given[index])).join("/");
}
