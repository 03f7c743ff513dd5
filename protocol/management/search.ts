import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { context, id, queryInteger } from "../fields.ts";

/** The maximum and default number of namespaces and of tables that a search returns. */
export const foundMax = 200;

export const searchNamespace = defineContract({
  operationId: "SearchNamespace",
  summary: "Find the namespaces and tables below a namespace by a part of their name",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/search",
  query: z.object({
    name: text(characters.name)
      .min(1)
      .refine((name) => !/\p{Cc}/u.test(name), "must not contain control characters")
      .describe(
        "A part of a name, in any case; or the end of a namespace, the delimiter and the beginning of a name in it.",
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
    })
    .meta({ id: "SearchNamespaceResponse" }),
  access: onPath("reader"),
});
