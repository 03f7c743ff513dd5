import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import {
  type AnyContract,
  CatalogError,
  contracts,
  managementContracts,
  remoteContracts,
  remoteHeaders,
  remoteVersion,
} from "@tiltyard/protocol";
import { type Context, Hono } from "hono";
import type { DevelopmentIssuer } from "../auth/development-issuer.ts";
import type { Writer } from "../processes/calls.ts";
import { allOperations } from "./all-operations.ts";
import { answeringErrors, errorAnswer, idOf, send } from "./answer.ts";
import { byWriter, isHandedOver } from "./by-writer.ts";
import { mountConsole } from "./console-page.ts";
import { mountDocsPage } from "./docs-page.ts";
import { type Exchange, exchangeOf, headerOf, namesHost, type Serve } from "./exchange.ts";
import type { HandOver } from "./hand-over.ts";
import { openApiDocument } from "./openapi.ts";
import { type OperationParts, serveOperation } from "./operation.ts";
import { patternOf, Routes, routeNotFound } from "./routes.ts";
import { brokenRequest } from "./server.ts";
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

/** The service as a function that answers requests. */
export function createApp(parts: AppParts): Serve {
  const { log, developmentIssuer, writer } = parts;
  const routes = new Routes();
  const pages = createPages(parts);

  for (const [name, operation] of allOperations) {
    const { contract, handler } = operation;
    const doneBy = writer === undefined ? handler : byWriter(name, operation, writer.operations);
    const serve =
      writer !== undefined && isHandedOver(contract)
        ? handTo(writer.requests, contract, parts)
        : tellingVersion(serveOperation(contract, doneBy, parts));
    routes.add(contract.methods, contract.path, serve);
    refuseOtherMethods(pages, contract.path, contract.methods);
  }
  if (developmentIssuer !== undefined) {
    routes.add(["POST"], tokenPath, tokenEndpoint(developmentIssuer, parts));
    refuseOtherMethods(pages, tokenPath, ["POST"]);
  }
  const fetchPage: typeof pages.fetch = async (request, env) => {
    const response = await pages.fetch(request, env);
    // For HEAD, Hono answers a copy of what says that the answer was sent.
    return (env as HttpBindings).outgoing.headersSent ? RESPONSE_ALREADY_SENT : response;
  };
  const servePage = getRequestListener(fetchPage, {
    errorHandler: () => Response.json(brokenRequest(), { status: 400 }),
  });
  return answeringErrors((exchange) => {
    if (!namesHost(exchange)) throw new CatalogError("InvalidInput", "the request names no host");
    const serve = routes.find(exchange);
    return serve === undefined ? servePage(exchange.incoming, exchange.outgoing) : serve(exchange);
  }, log);
}

/** What is no operation, for people and for what watches over the service. */
function createPages({ log, metrics, metricsOfOthers, isReady, developmentIssuer }: AppParts): Hono {
  const respond = (error: unknown, context: Context) => {
    const exchange = exchangeIn(context);
    send(exchange, errorAnswer(error, exchange.path, idOf(exchange), log));
    return RESPONSE_ALREADY_SENT;
  };
  const pages = new Hono().onError(respond).notFound((context) => respond(nothingAt(exchangeIn(context)), context));
  for (const [path, document] of Object.entries(documents)) {
    // Made when first requested: making them takes a fifth of a start, and few processes need them.
    let made: ReturnType<typeof openApiDocument> | undefined;
    pages.get(path, (context) => {
      made ??= openApiDocument({ ...document, tokenUrl: developmentIssuer && tokenPath });
      return context.json(made);
    });
  }
  pages.get("/metrics", async (context) =>
    context.body(await metrics.text(await metricsOfOthers()), 200, { "content-type": metrics.contentType }),
  );
  pages.get("/health/live", (context) => context.json({ status: "live" }));
  pages.get("/health/ready", async (context) => {
    if (await isReady()) return context.json({ status: "ready" });
    throw new CatalogError("ServiceUnavailable", "the service is not ready");
  });
  mountDocsPage(pages, documents);
  mountConsole(pages);
  return pages;
}

function exchangeIn({ env }: Context): Exchange {
  const { incoming, outgoing } = env as HttpBindings;
  return exchangeOf(incoming, outgoing);
}

/** LanceDB's client takes 404 for a table that is not there, whatever it asked for. */
function nothingAt(exchange: Exchange): CatalogError {
  return headerOf(exchange, remoteHeaders.database) === undefined
    ? routeNotFound()
    : new CatalogError("Unsupported", `this catalog has no operation ${exchange.incoming.method} ${exchange.path}`);
}

/** Tells LanceDB's client, in each answer, which server it has. */
function tellingVersion(serve: Serve): Serve {
  return (exchange) => {
    if (headerOf(exchange, remoteHeaders.database) !== undefined)
      exchange.outgoing.setHeader(remoteHeaders.version, remoteVersion);
    return serve(exchange);
  };
}

/** Serves an operation whose requests another process takes. That one logs and counts it, unless it does not answer. */
function handTo(writer: HandOver, contract: AnyContract, { log, metrics }: OperationParts): Serve {
  return async (exchange) => {
    const start = performance.now();
    try {
      await writer.handOver(exchange, contract);
    } catch (error) {
      const answer = errorAnswer(error, exchange.path, idOf(exchange), log);
      metrics.observeOperation(contract.operationId, answer.status, performance.now() - start);
      send(exchange, answer);
    }
  };
}

function refuseOtherMethods(pages: Hono, path: string, methods: readonly string[]): void {
  pages.all(patternOf(path), (context) => {
    // Only the path as it stands in the protocol leads to an operation.
    if (methods.includes(context.req.method)) throw nothingAt(exchangeIn(context));
    // An answer to an error has what was set before.
    (context.env as HttpBindings).outgoing.setHeader("allow", methods.join(", "));
    throw new CatalogError(
      "MethodNotAllowed",
      `${context.req.method} is not allowed here: use ${methods.join(" or ")}`,
    );
  });
}
