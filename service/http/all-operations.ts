import { type AnyContract, contracts, managementContracts, remoteContracts } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import { handlers } from "../operations/index.ts";
import { managementHandlers } from "../operations/management/index.ts";
import { remoteHandlers } from "../remote/index.ts";

/** An operation: what is served, and what carries it out. */
export interface Operation {
  readonly contract: AnyContract;
  readonly handler: Handler<AnyContract>;
}

const allContracts: Readonly<Record<string, AnyContract>> = {
  ...contracts,
  ...managementContracts,
  ...remoteContracts,
};
// The registries' own types hold each handler to its contract.
const allHandlers = { ...handlers, ...managementHandlers, ...remoteHandlers } as unknown as Readonly<
  Record<string, Handler<AnyContract>>
>;

/** All operations by the names of their contracts. */
export const allOperations: ReadonlyMap<string, Operation> = new Map(
  Object.entries(allContracts).map(([name, contract]) => [name, { contract, handler: handlerOf(name) }]),
);

function handlerOf(name: string): Handler<AnyContract> {
  const handler = allHandlers[name];
  if (handler === undefined) throw new Error(`there is no handler of ${name}`);
  return handler;
}
