import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { AnsweredProperties, context, id, pageQuery, pageResponse, queryBoolean, queryInteger } from "../fields.ts";
import { transactionStatuses } from "../transaction-status.ts";
import { PrincipalName, statusesInQuery, timeMillis } from "./fields.ts";

const Transaction = z
  .object({
    transaction_id: z.string().describe("As DescribeTransaction takes it."),
    status: z.enum(transactionStatuses),
    operation: z.string().describe("The operation id that opened it."),
    objects: z.array(id).describe("The identifiers of what it changes, the main one first."),
    principal: z.string(),
    request_id: z.string(),
    properties: AnsweredProperties,
    created_at_millis: timeMillis,
    updated_at_millis: timeMillis,
  })
  .meta({ id: "TransactionSummary" });

const time = queryInteger(0).optional();

export const listTransactions = defineContract({
  operationId: "ListTransactions",
  summary: "List the transactions of a namespace and of what is under it, latest first",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/transaction/list",
  query: z.object({
    ...pageQuery,
    table: text(characters.path)
      .optional()
      .describe("Only those that change this table: its identifier, in the delimiter."),
    principal: PrincipalName.optional(),
    status: statusesInQuery.optional(),
    since_millis: time.describe("Only those that were opened at this time or after it, in milliseconds."),
    until_millis: time.describe("Only those that were opened before this time, in milliseconds."),
    ascending: queryBoolean.optional().describe("Oldest first."),
  }),
  response: z
    .object({ context, transactions: z.array(Transaction), ...pageResponse })
    .meta({ id: "ListTransactionsResponse" }),
  access: onPath("reader"),
});
