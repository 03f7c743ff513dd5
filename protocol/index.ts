export * from "./contract.ts";
export * from "./contracts.ts";
export * from "./errors.ts";
export { Context, Identity } from "./fields.ts";
export * from "./identifier.ts";
export type { DeclareTableRequest, DeclareTableResponse } from "./operations/table.ts";
export { TableVersion } from "./operations/table-version.ts";
export { type AlterTransactionAction, type TransactionStatus, transactionStatuses } from "./operations/transaction.ts";
export { StackOutputs, secretOutputs } from "./stack-outputs.ts";
