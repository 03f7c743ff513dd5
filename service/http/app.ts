import {
  type AnyContract,
  CatalogError,
  contracts,
  managementContracts,
  remoteContracts,
  remoteHeaders,
  remoteVersion,
} from "@tiltyard/protocol";
import { type Context, Hono, type Handler as HonoHandler } from "hono";
import type { DevelopmentIssuer } from "../auth/development-issuer.ts";
import type { Writer } from "../processes/calls.ts";
import { allOperations } from "./all-operations.ts";
import { byWriter, isHandedOver } from "./by-writer.ts";
import { mountConsole } from "./console-page.ts";
import { mountDocsPage } from "./docs-page.ts";
import { respondWithError } from "./error-response.ts";
import type { HandOver } from "./hand-over.ts";
import { openApiDocument } from "./openapi.ts";
import { type OperationParts, serveOperation } from "./operation.ts";
import { requestIdOf } from "./request-id.ts";
import { tokenEndpoint } from "./token-endpoint.ts";

const tokenPath = "/oauth/token";

/** The OpenAPI documents: the protocol's own has what the protocol has, and nothing else. */
const documents = {
  "/openapi.json": {
    title: "Tiltyard catalog",
    description: "The Lance REST Catalog protocol.",
    contracts: Object.values<AnyContract>(contracts),
  },
  "/management/v1/openapi.json": {
    title: "Tiltyard catalog: management",
    description: "Principals and roles, the audit, jobs, and dropped tables.",
    contracts: Object.values<AnyContract>(managementContracts),
  },
  "/remote/openapi.json": {
    title: "Tiltyard catalog: LanceDB's remote client",
    description: 'What lancedb.connect("db://...", host_override=...) sends, apart from the operations on namespaces.',
    contracts: Object.values<AnyContract>(remoteContracts),
  },
} as const;

export interface AppParts extends OperationParts {
  /** The ways to the process that writes; undefined where this one does all. */
  readonly writer: { readonly operations: Writer; readonly requests: HandOver } | undefined;
  /** Absent when tokens come from an OIDC issuer. */
  readonly developmentIssuer: DevelopmentIssuer | undefined;
  /** The metrics of the other processes of this service. */
  readonly metricsOfOthers: () => Promise<readonly unknown[]>;
  /** Whether the service takes requests: false from the moment that it is told to stop. */
  readonly isReady: () => Promise<boolean>;
}

/** The service as a function from requests to responses. */
export function createApp(parts: AppParts): Hono {
  const { log, metrics, developmentIssuer, writer } = parts;
  const respond = (error: unknown, context: Context) => respondWithError(context, error, idOf(context), log);
  const others = new Hono().onError(respond).notFound((context) => respond(nothingAt(context), context));
  // Hono's fast router takes only paths without overlaps, and calls a single handler directly. So the operations on one
  // object have an app of their own, and `others` has all other paths.
  const app = new Hono().onError(respond).notFound((context) => others.fetch(context.req.raw, context.env));

  for (const [name, operation] of allOperations) {
    const { contract, handler } = operation;
    const path = contract.path.replaceAll(/\{(\w+)\}/g, ":$1");
    const router = !(name in managementContracts) && contract.path.split("{").length === 2 ? app : others;
    const doneBy = writer === undefined ? handler : byWriter(name, operation, writer.operations);
    const served =
      writer !== undefined && isHandedOver(contract)
        ? handTo(writer.requests, contract, parts)
        : tellingVersion(serveOperation(contract, doneBy, parts));
    router.on([...contract.methods], [path], served);
    refuseOtherMethods(others, path, contract.methods);
  }

  if (developmentIssuer !== undefined) {
    others.post(tokenPath, tokenEndpoint(developmentIssuer, parts));
    refuseOtherMethods(others, tokenPath, ["POST"]);
  }
  for (const [path, document] of Object.entries(documents)) {
    // Made when first requested: making them takes a fifth of a start, and few processes need them.
    let made: ReturnType<typeof openApiDocument> | undefined;
    others.get(path, (context) => {
      made ??= openApiDocument({ ...document, tokenUrl: developmentIssuer && tokenPath });
      return context.json(made);
    });
  }
  others.get("/metrics", async (context) =>
    context.body(await metrics.text(await parts.metricsOfOthers()), 200, { "content-type": metrics.contentType }),
  );
  others.get("/health/live", (context) => context.json({ status: "live" }));
  others.get("/health/ready", async (context) => {
    if (await parts.isReady()) return context.json({ status: "ready" });
    throw new CatalogError("ServiceUnavailable", "the service is not ready");
  });
  mountDocsPage(others, documents);
  mountConsole(others);
  return app;
}

/** LanceDB's client takes 404 for a table that is not there, whatever it asked for. */
function nothingAt({ req }: Context): CatalogError {
  return req.header(remoteHeaders.database) === undefined
    ? new CatalogError("RouteNotFound", "there is nothing at this path")
    : new CatalogError("Unsupported", `this catalog has no operation ${req.method} ${req.path}`);
}

/** Tells LanceDB's client, in each answer, which server it has. */
function tellingVersion(serve: HonoHandler): HonoHandler {
  const tell: HonoHandler = async (context, next) => {
    const response = await serve(context, next);
    response.headers.set(remoteHeaders.version, remoteVersion);
    return response;
  };
  return (context, next) => (context.req.header(remoteHeaders.database) === undefined ? serve : tell)(context, next);
}

/** Serves an operation whose requests another process takes. That one logs and counts it, unless it does not answer. */
function handTo(writer: HandOver, contract: AnyContract, { log, metrics }: OperationParts): HonoHandler {
  return async (context) => {
    const start = performance.now();
    try {
      return await writer.handOver(context, contract);
    } catch (error) {
      const response = respondWithError(context, error, idOf(context), log);
      metrics.observeOperation(contract.operationId, response.status, performance.now() - start);
      return response;
    }
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

function idOf(context: Context): string {
  return requestIdOf(context.req.header("x-request-id")) ?? crypto.randomUUID();
}
