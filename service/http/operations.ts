import { type AnyContract, contracts, managementContracts, remoteContracts } from "@tiltyard/protocol";
import type { AuthorizedCaller, Catalog, Handler, Operations } from "../operations/handler.ts";
import * as protocolHandlers from "../operations/index.ts";
import * as managementHandlers from "../operations/management/index.ts";
import { remoteHandlers } from "../remote/index.ts";

/** A contract and the handler that implements it. */
export interface Operation {
  readonly contract: AnyContract;
  /** The type of the handlers binds each of them to its contract. */
  readonly handler: (request: never, catalog: Catalog, caller: AuthorizedCaller) => Promise<unknown>;
}

const handlers: { readonly [Name in keyof Operations]: Handler<Name> } = {
  ...protocolHandlers,
  ...managementHandlers,
  ...remoteHandlers,
};

/** All operations: those of the protocol, of management, and of LanceDB's remote client. */
export const operations: readonly Operation[] = Object.entries<AnyContract>({
  ...contracts,
  ...managementContracts,
  ...remoteContracts,
}).map(([name, contract]) => ({ contract, handler: handlers[name as keyof Operations] }));

/** Converts a path of the protocol to Hono's syntax: `/v1/table/{id}/describe` becomes `/v1/table/:id/describe`. */
export function routePath({ path }: AnyContract): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
