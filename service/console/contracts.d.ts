/** The types of the module that service/http/console-page.ts makes from the contracts. */
import type { AnyContract, Contracts, ManagementContracts, ResponseOf } from "@tiltyard/protocol";
import type { z } from "zod";

type Operations = Contracts & ManagementContracts;
export type OperationName = keyof Operations;

/** A schema without fields has a type that forbids every field. */
type QueryOf<C extends AnyContract> = string extends keyof z.infer<C["query"]> ? object : Partial<z.infer<C["query"]>>;

/** The parts of the object's identifier, and the fields of the operation's query and body. */
export type RequestTo<Name extends OperationName> = { readonly id?: readonly string[] } & QueryOf<Operations[Name]> &
  Omit<z.input<Operations[Name]["body"]>, "id" | "identity" | "context">;

export type AnswerTo<Name extends OperationName> = ResponseOf<Operations[Name]>;

/** How each operation is called; `query` names the fields that its query has. */
export const operations: Readonly<
  Record<OperationName, { readonly method: "GET" | "POST"; readonly path: string; readonly query: readonly string[] }>
>;
export { includedRoles, roles, transactionStatuses } from "@tiltyard/protocol";
