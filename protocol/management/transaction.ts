import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { AnsweredProperties, context, id, pageQuery, pageResponse, queryBoolean, queryInteger } from "../fields.ts";
import { transactionStatuses } from "../transaction-status.ts";
import { PrincipalName, statusesInQuery, timeMillis } from "./fields.ts";

const Transaction = z
  .object({
    transaction_id: z.string().describe("The id that DescribeTransaction accepts."),
    status: z.enum(transactionStatuses),
    operation: z.string().describe("The id of the operation that opened the transaction."),
    objects: z.array(id).describe("The identifiers of the changed objects, the main one first."),
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
  summary: "List the transactions of a namespace and its descendants, latest first",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/transaction/list",
  query: z.object({
    ...pageQuery,
    table: text(characters.path).optional().describe("Only transactions that change the table with this identifier."),
    principal: PrincipalName.optional(),
    status: statusesInQuery.optional(),
    since_millis: time.describe("Only transactions since this time, in milliseconds since the epoch."),
    until_millis: time.describe("Only transactions before this time, in milliseconds since the epoch."),
    ascending: queryBoolean.optional().describe("Sorts the oldest first."),
  }),
  response: z
    .object({ context, transactions: z.array(Transaction), ...pageResponse })
    .meta({ id: "ListTransactionsResponse" }),
  access: onPath("reader"),
});
