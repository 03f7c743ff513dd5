import { z } from "zod";
import { characters, items, list, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { AnsweredProperties, Context, commonRequest, exactlyOneOf, word } from "../fields.ts";
import { transactionStatuses } from "../transaction-status.ts";

const SetStatusAction = z.object({ status: word(transactionStatuses) }).meta({ id: "AlterTransactionSetStatus" });

const SetPropertyAction = z
  .object({
    key: text(characters.name).min(1),
    value: text(characters.text),
    mode: word(["Overwrite", "Fail", "Skip"]).optional(),
  })
  .meta({ id: "AlterTransactionSetProperty" });

const UnsetPropertyAction = z
  .object({ key: text(characters.name).min(1), mode: word(["Skip", "Fail"]).optional() })
  .meta({ id: "AlterTransactionUnsetProperty" });

const AlterTransactionAction = exactlyOneOf({
  setStatusAction: SetStatusAction.optional(),
  setPropertyAction: SetPropertyAction.optional(),
  unsetPropertyAction: UnsetPropertyAction.optional(),
}).meta({ id: "AlterTransactionAction" });
export type AlterTransactionAction = z.infer<typeof AlterTransactionAction>;

/** The response fields of describing and altering a transaction. */
const transaction = {
  status: z.enum(transactionStatuses),
  context: Context.describe("The principal, the operation, its objects and the time."),
  properties: AnsweredProperties,
};

export const describeTransaction = defineContract({
  operationId: "DescribeTransaction",
  summary: "Describe a transaction",
  path: "/v1/transaction/{id}/describe",
  response: z.object(transaction).meta({ id: "DescribeTransactionResponse" }),
  errors: [404],
  access: onPath("reader"),
});

export const alterTransaction = defineContract({
  operationId: "AlterTransaction",
  summary: "Apply actions to a transaction, all or none",
  path: "/v1/transaction/{id}/alter",
  body: z
    .object({ ...commonRequest, actions: list(AlterTransactionAction, items.actions).min(1) })
    .meta({ id: "AlterTransactionRequest" }),
  response: z.object(transaction).meta({ id: "AlterTransactionResponse" }),
  errors: [404, 409],
  bodySize: "large",
  access: onPath("writer", "runner"),
});
