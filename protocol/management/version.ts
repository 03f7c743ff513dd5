import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { context, pageQuery, pageResponse } from "../fields.ts";
import { TableVersion } from "../operations/table-version.ts";

const VersionOrigin = TableVersion.extend({
  transaction_id: z
    .string()
    .optional()
    .describe("The transaction of the commit, if the catalog still has its record and the caller may read it."),
  operation: z.string().optional().describe("The operation id of the commit."),
  lance_operation: z
    .string()
    .optional()
    .describe(
      "Lance's operation, such as `Append` or `Rewrite`; absent for a version of a writer outside the catalog.",
    ),
  num_rows: z
    .int()
    .optional()
    .describe("The number of rows that are not deleted; absent if the manifest of the commit does not have it."),
  principal: z.string().optional().describe("The principal of the commit."),
}).meta({ id: "VersionOrigin", description: "A version of a table with the origin of its commit." });

export const listTableHistory = defineContract({
  operationId: "ListTableHistory",
  summary: "List the versions of a table with the operation and the principal of each commit, latest first",
  methods: ["GET"],
  path: "/management/v1/table/{id}/history/list",
  query: z.object({
    ...pageQuery,
    branch: text(characters.name).optional().describe("The branch; main when absent."),
  }),
  response: z
    .object({ context, versions: z.array(VersionOrigin), ...pageResponse })
    .meta({ id: "ListTableHistoryResponse" }),
  errors: [404],
  access: onPath("reader"),
});
