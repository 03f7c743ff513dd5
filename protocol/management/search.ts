import { z } from "zod";
import { text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { context, id, queryInteger } from "../fields.ts";

/** The maximum and default number of namespaces, of tables and of columns that a search returns. */
export const foundMax = 200;

/** The maximum length of a search, whose comparison with a long name costs the product of both lengths. */
const searchedMax = 64;

export const searchNamespace = defineContract({
  operationId: "SearchNamespace",
  summary: "Find the namespaces, tables and columns below a namespace by a part of their name",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/search",
  query: z.object({
    name: text(searchedMax)
      .min(1)
      .refine((name) => !/\p{Cc}/u.test(name), "must not contain control characters")
      .describe(
        "A part of a name, in any case; or the end of a namespace or a table, the delimiter and the beginning of a name in it.",
      ),
    limit: queryInteger(1).optional().describe(`The maximum number of each; ${foundMax} at most.`),
  }),
  response: z
    .object({
      context,
      namespaces: z
        .array(id)
        .describe("The namespaces, best matches first: the same name, the same beginning, others."),
      tables: z.array(id).describe("The tables, best matches first."),
      columns: z
        .array(
          z.object({
            table: id.describe("The table of the column."),
            column: z.string().describe("The path of the column or of a field in it, such as meta.year."),
          }),
        )
        .describe("The columns, best matches first. A commit's columns are found after about a minute."),
    })
    .meta({ id: "SearchNamespaceResponse" }),
  access: onPath("reader"),
});
