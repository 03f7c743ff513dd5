/** The types of the module that service/pages/console-page.ts renders from the contracts. */
import type { AnyContract, Contracts, ManagementContracts, RequestShape, ResponseOf } from "@tiltyard/protocol";
import type { z } from "zod";

type Operations = Contracts & ManagementContracts;
export type OperationName = keyof Operations;

/** The query of an operation. A schema without fields has a type that forbids every field, which this type replaces. */
type QueryOf<C extends AnyContract> = string extends keyof z.infer<C["query"]> ? object : Partial<z.infer<C["query"]>>;

/** The parts of the object's identifier with the fields of the operation's query and body. */
export type RequestTo<Name extends OperationName> = { readonly id?: readonly string[] } & QueryOf<Operations[Name]> &
  Omit<z.input<Operations[Name]["body"]>, "id" | "identity" | "context">;

export type AnswerTo<Name extends OperationName> = ResponseOf<Operations[Name]>;

/** The method and the path of each operation, and the names of the fields in its query. */
export const operations: Readonly<Record<OperationName, RequestShape>>;
export { delimiterFor, httpRequest, includedRoles, roles, transactionStatuses } from "@tiltyard/protocol";
