import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import {
  type AnswerOf,
  bodies,
  CatalogError,
  type Contracts,
  contracts,
  hasKind,
  type RequestOf,
} from "@tiltyard/protocol";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { OutdatedChangeError } from "../commits/series.ts";
import { fieldTreeOf, withoutNulls } from "../domain/request-fields.ts";

/** The operations that the library calls while it works on one table. */
const viewOperations = [
  "declareTable",
  "describeTable",
  "listTableVersions",
  "describeTableVersion",
  "createTableVersion",
] as const;
type ViewOperation = (typeof viewOperations)[number];

/**
 * Keeps idle connections open. After a stall of the event loop, Node would close one with an unread request, and the
 * library reports a commit on it as a conflict with a version that does not exist.
 */
const connectionOptions = { keepAliveTimeout: 0, requestTimeout: 0 };

/** A table as the library sees it during one request. */
export type TableView = {
  readonly [Name in ViewOperation]: (request: RequestOf<Contracts[Name]>) => Promise<AnswerOf<Contracts[Name]>>;
} & {
  /** Holds back the versions that the library commits from now on. */
  hold(): void;
};

/** A view that the child can access until it is disposed. */
export interface ServedView extends Disposable {
  readonly uri: string;
  readonly token: string;
  /** The latest rejection by the view, which the library reports with its own text. */
  readonly failure: unknown;
  /** Rejects further requests and waits for those in progress. */
  close(): Promise<void>;
}

export type Gateway = ReturnType<typeof createGateway>;

interface Entry {
  readonly view: TableView;
  readonly running: Set<Promise<unknown>>;
  failure: unknown;
  /** Reports whether a commit was rejected and no retry of it can succeed; `failure` then keeps that rejection. */
  isRefused: boolean;
}

/**
 * Creates the catalog's address for the child: a port of the loopback interface, where a token grants access to one table
 * for one request. That request was already authorized and counted, so no rate or connection limit applies here.
 */
export function createGateway() {
  const entries = new Map<string, Entry>();
  let listening: Promise<Server> | undefined;
  let uri: string | undefined;

  const app = new Hono<{ Variables: { entry: Entry } }>();
  app.use(bodyLimit({ maxSize: bodies.large.bytes }), async (context, next) => {
    const entry = entries.get(/^Bearer (\S+)$/.exec(context.req.header("authorization") ?? "")?.[1] ?? "");
    if (entry === undefined) throw new CatalogError("Unauthenticated", "this address is for the catalog itself");
    context.set("entry", entry);
    await next();
  });
  app.post("/hold", (context) => {
    context.get("entry").view.hold();
    return context.json({});
  });
  for (const name of viewOperations) {
    const { path, query, body } = contracts[name];
    const fields = fieldTreeOf(body);
    app.post(path.replace("{id}", ":id"), async (context) => {
      const entry = context.get("entry");
      const sent: unknown = JSON.parse((await context.req.text()) || "null");
      withoutNulls(fields, sent);
      const [inQuery, inBody] = [query.safeParse(context.req.query()), body.safeParse(sent ?? {})];
      const problem = inQuery.error ?? inBody.error;
      if (problem !== undefined) throw new CatalogError("InvalidInput", problem.message);
      const request = { ...inQuery.data, ...inBody.data, id: [], indexName: "", delimiter: "$" };
      // The view's own type binds each operation to its contract.
      const operation = entry.view[name] as (request: unknown) => Promise<object>;
      const running = operation(request);
      entry.running.add(running);
      try {
        return context.json(await running);
      } catch (error) {
        if (!entry.isRefused) entry.failure = error;
        const isFinal = !hasKind(error, "ConcurrentModification") || error instanceof OutdatedChangeError;
        entry.isRefused ||= name === "createTableVersion" && isFinal;
        throw error;
      } finally {
        entry.running.delete(running);
      }
    });
  }
  app.notFound(() => {
    throw new CatalogError("RouteNotFound", "this address is for the catalog itself");
  });
  app.onError((error, context) => {
    const known = error instanceof CatalogError ? error : new CatalogError("Internal", "the view failed");
    return context.json(known.toResponse(context.req.path), known.status);
  });

  async function listen(): Promise<Server> {
    const server = createServer(connectionOptions, getRequestListener(app.fetch));
    server.listen({ host: "127.0.0.1", port: 0, exclusive: true });
    await once(server, "listening");
    return server;
  }

  return {
    /** Opens the port if it is closed. */
    listen: async () => {
      listening ??= listen();
      const { port } = (await listening).address() as AddressInfo;
      uri = `http://127.0.0.1:${port}`;
    },
    /** Serves a view. @throws Error before the port is open. */
    serve: (view: TableView): ServedView => {
      if (uri === undefined) throw new Error("the gateway does not listen yet");
      const token = randomBytes(32).toString("base64url");
      const entry: Entry = { view, running: new Set(), failure: undefined, isRefused: false };
      entries.set(token, entry);
      return {
        uri,
        token,
        get failure() {
          return entry.failure;
        },
        close: async () => {
          entries.delete(token);
          await Promise.allSettled(entry.running);
        },
        [Symbol.dispose]: () => entries.delete(token),
      };
    },
    [Symbol.asyncDispose]: async () => {
      const server = await listening;
      if (server === undefined) return;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
