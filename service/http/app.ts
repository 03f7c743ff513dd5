import { type AnyContract, CatalogError, contracts, managementContracts } from "@tiltyard/protocol";
import { Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Authenticator } from "../auth/authenticator.ts";
import type { DevelopmentIssuer } from "../auth/development-issuer.ts";
import type { Log } from "../log.ts";
import type { Catalog, Handler } from "../operations/handler.ts";
import { handlers } from "../operations/index.ts";
import { managementHandlers } from "../operations/management/index.ts";
import { mountConsole } from "./console-page.ts";
import { mountDocsPage } from "./docs-page.ts";
import { respondWithError } from "./error-response.ts";
import type { Metrics } from "./metrics.ts";
import { openApiDocument } from "./openapi.ts";
import { serveOperation } from "./operation.ts";
import type { RateLimit } from "./rate-limit.ts";
import { requestIdOf } from "./request-id.ts";
import { tokenEndpoint } from "./token-endpoint.ts";

export const bodyBytesMax = 4 * 1024 * 1024;
const tokenPath = "/oauth/token";

/** The OpenAPI documents: the protocol's own has what the protocol has, and nothing else. */
const documents = {
  "/openapi.json": {
    title: "Tiltyard catalog",
    description: "The Lance REST Catalog protocol. Operations marked x-unsupported answer 406.",
    contracts: Object.values<AnyContract>(contracts),
  },
  "/management/v1/openapi.json": {
    title: "Tiltyard catalog: management",
    description: "Who may do what, who did what, and tables that were dropped.",
    contracts: Object.values<AnyContract>(managementContracts),
  },
} as const;

export interface AppParts {
  readonly catalog: Catalog;
  readonly authenticator: Authenticator;
  /** Absent when tokens come from an OIDC issuer. */
  readonly developmentIssuer: DevelopmentIssuer | undefined;
  readonly rateLimit: RateLimit;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Whether the service takes requests: false from the moment that it is told to stop. */
  readonly isReady: () => Promise<boolean>;
}

/** The service as a function from requests to responses. */
export function createApp(parts: AppParts): Hono {
  const { log, metrics, developmentIssuer } = parts;
  const app = new Hono();

  app.onError((error, context) => respondWithError(context, error, idOf(context), log));
  app.notFound((context) =>
    respondWithError(context, new CatalogError("RouteNotFound", "there is nothing at this path"), idOf(context), log),
  );
  app.use(limitBodies());

  mountOperations(app, contracts, handlers, parts);
  mountOperations(app, managementContracts, managementHandlers, parts);

  if (developmentIssuer !== undefined) {
    app.post(tokenPath, tokenEndpoint(developmentIssuer, parts.authenticator));
    refuseOtherMethods(app, tokenPath, ["POST"]);
  }
  for (const [path, document] of Object.entries(documents)) {
    const made = openApiDocument({ ...document, tokenUrl: developmentIssuer && tokenPath });
    app.get(path, (context) => context.json(made));
  }
  app.get("/metrics", async (context) =>
    context.body(await metrics.text(), 200, { "content-type": metrics.contentType }),
  );
  app.get("/health/live", (context) => context.json({ status: "live" }));
  app.get("/health/ready", async (context) => {
    if (await parts.isReady()) return context.json({ status: "ready" });
    throw new CatalogError("ServiceUnavailable", "the service is not ready");
  });
  mountDocsPage(app, documents);
  mountConsole(app);
  return app;
}

function mountOperations(
  app: Hono,
  mounted: Readonly<Record<string, AnyContract>>,
  handledBy: Readonly<Record<string, unknown>>,
  parts: AppParts,
): void {
  for (const [name, contract] of Object.entries(mounted)) {
    const path = contract.path.replaceAll(/\{(\w+)\}/g, ":$1");
    // The registry's own type holds each handler to its contract.
    const handler = handledBy[name] as Handler<AnyContract> | undefined;
    app.on([...contract.methods], path, serveOperation(contract, handler, parts));
    refuseOtherMethods(app, path, contract.methods);
  }
}

/** Trusts the length that a request tells, which Node holds it to; a body that tells none is counted as it comes. */
function limitBodies(): MiddlewareHandler {
  const refuse = () => {
    throw new CatalogError("PayloadTooLarge", `a request body may have ${bodyBytesMax} bytes, no more`);
  };
  const count = bodyLimit({ maxSize: bodyBytesMax, onError: refuse });
  return (context, next) => {
    if (context.req.method === "GET") return next();
    const length = context.req.header("content-length");
    if (length === undefined || context.req.header("transfer-encoding") !== undefined) return count(context, next);
    return Number(length) > bodyBytesMax ? refuse() : next();
  };
}

function refuseOtherMethods(app: Hono, path: string, methods: readonly string[]): void {
  app.all(path, (context) => {
    context.header("allow", methods.join(", "));
    throw new CatalogError(
      "MethodNotAllowed",
      `${context.req.method} is not allowed here: use ${methods.join(" or ")}`,
    );
  });
}

function idOf(context: { readonly req: { header(name: string): string | undefined } }): string {
  return requestIdOf(context.req.header("x-request-id")) ?? crypto.randomUUID();
}
