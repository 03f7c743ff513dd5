import { type AnyContract, contracts, managementContracts, remoteContracts } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import { handlers } from "../operations/index.ts";
import { managementHandlers } from "../operations/management/index.ts";
import { remoteHandlers } from "../remote/index.ts";

/** A contract and the handler that implements it. */
export interface Operation {
  readonly contract: AnyContract;
  readonly handler: Handler<AnyContract>;
}

/** All operations: those of the protocol, of management, and of LanceDB's remote client. */
export const operations: readonly Operation[] = [
  ...join(contracts, handlers),
  ...join(managementContracts, managementHandlers),
  ...join(remoteContracts, remoteHandlers),
];

/**
 * Joins contracts with their handlers. The types of the registries bind each handler to its contract and do not compile
 * if one is missing.
 */
function join(
  contractsByName: Readonly<Record<string, AnyContract>>,
  handlersByName: Readonly<Record<string, unknown>>,
): readonly Operation[] {
  return Object.entries(contractsByName).map(([name, contract]) => ({
    contract,
    handler: handlersByName[name] as Handler<AnyContract>,
  }));
}

/** Converts a path of the protocol to Hono's syntax: `/v1/table/{id}/describe` becomes `/v1/table/:id/describe`. */
export function routePath({ path }: AnyContract): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
