import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type AnyContract, bodies, CatalogError, contracts } from "@tiltyard/protocol";
import { isConflict } from "../dataset/errors.ts";
import { type Gateway, type TableView, viewOperations } from "../dataset/table-view.ts";
import type { Log } from "../log.ts";
import { answeringErrors, jsonAnswer, send } from "./answer.ts";
import { createBodyMemory } from "./body-memory.ts";
import { credentialOfHeaders } from "./credential.ts";
import type { Exchange } from "./exchange.ts";
import { readJson } from "./read-body.ts";
import { createPathReader } from "./request-path.ts";
import { Routes, routeNotFound } from "./routes.ts";
import { answer } from "./server.ts";
import { createRequestReader } from "./validate.ts";

interface Entry {
  readonly view: TableView;
  failure: unknown;
  /** Whether a commit was refused for another reason than a conflict: `failure` then stays that refusal. */
  isRefused: boolean;
}

/** Serves views on a port of loopback that is opened for the first of them. */
export function createGateway(log: Log): Gateway {
  const entries = new Map<string, Entry>();
  let listening: Promise<Server> | undefined;

  // The library's bodies count towards no limit: the caller's own request was admitted.
  const memory = createBodyMemory(Number.POSITIVE_INFINITY);
  const routes = new Routes();
  for (const name of viewOperations) {
    const contract: AnyContract = contracts[name];
    const readPath = createPathReader(contract, false);
    const readRequest = createRequestReader(contract);
    routes.add(["POST"], contract.path, async (exchange) => {
      const credential = credentialOfHeaders(exchange);
      const entry = credential?.kind === "bearer" ? entries.get(credential.token) : undefined;
      if (entry === undefined) throw new CatalogError("Unauthenticated", "this address is for the catalog itself");
      try {
        const path = readPath(exchange);
        using lease = memory.lease({ isAnonymous: false });
        const body = await readJson(exchange, bodies[contract.bodySize], lease);
        // The view's own type holds each operation to its contract.
        const carryOut = entry.view[name] as (request: unknown) => Promise<object>;
        send(exchange, jsonAnswer(200, JSON.stringify(await carryOut(readRequest(exchange.query, path, body))), {}));
      } catch (error) {
        if (!entry.isRefused) entry.failure = error;
        entry.isRefused ||= name === "createTableVersion" && !isConflict(error);
        throw error;
      }
    });
  }

  const serve = async (exchange: Exchange) => {
    const found = routes.find(exchange);
    if (found === undefined) throw routeNotFound();
    await found(exchange);
  };

  async function listen(): Promise<Server> {
    const server = createServer();
    answer(server, answeringErrors(serve, log), { begin: () => {} });
    // Of this process alone: the processes of a service would share the port otherwise.
    server.listen({ host: "127.0.0.1", port: 0, exclusive: true });
    await new Promise<void>((resolve, reject) => {
      server.once("listening", resolve);
      server.once("error", reject);
    });
    return server;
  }

  return {
    serve: async (view) => {
      listening ??= listen();
      const { port } = (await listening).address() as AddressInfo;
      const token = randomBytes(32).toString("base64url");
      const entry: Entry = { view, failure: undefined, isRefused: false };
      entries.set(token, entry);
      return {
        uri: `http://127.0.0.1:${port}`,
        token,
        get failure() {
          return entry.failure;
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
