import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, count, pageQuery, pageResponse } from "../fields.ts";

const BranchContents = z
  .object({
    parentBranch: z.string().optional().describe("Absent for the main branch."),
    parentVersion: count,
    createAt: count.describe("The time of the creation in seconds since the epoch."),
    manifestSize: count.describe("The size in bytes."),
    metadata: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: "BranchContents" });

export const listTableBranches = defineContract({
  operationId: "ListTableBranches",
  summary: "List the branches of a table",
  path: "/v1/table/{id}/branches/list",
  query: z.object(pageQuery),
  response: z
    .object({ context, branches: z.record(z.string(), BranchContents), ...pageResponse })
    .meta({ id: "ListTableBranchesResponse" }),
  errors: [404, 409],
  access: onPath("reader"),
});

export const createTableBranch = defineContract({
  operationId: "CreateTableBranch",
  summary: "Create a branch of a table",
  path: "/v1/table/{id}/branches/create",
  body: z
    .object({
      ...commonRequest,
      name: text(characters.name).min(1),
      from_branch: text(characters.name)
        .optional()
        .describe("The branch from which the new branch begins; the main branch when absent."),
      from_version: count.optional().describe("The version at which the branch begins; the latest one when absent."),
    })
    .meta({ id: "CreateTableBranchRequest" }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "CreateTableBranchResponse" }),
  errors: [404, 406, 409],
  access: onPath("writer"),
});

export const deleteTableBranch = defineContract({
  operationId: "DeleteTableBranch",
  summary: "Delete a branch of a table with its data",
  path: "/v1/table/{id}/branches/delete",
  body: z.object({ ...commonRequest, name: text(characters.name).min(1) }).meta({ id: "DeleteTableBranchRequest" }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "DeleteTableBranchResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
});
