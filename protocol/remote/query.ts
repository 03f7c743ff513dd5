import { z } from "zod";
import { characters, items, list, map, numbers, sqlExpression, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { branch, commonRequest, count, datasetReadErrors, fieldPath, optional } from "../fields.ts";
import {
  analyzeTableQueryPlan,
  explainTableQueryPlan,
  MatchQuery,
  PhraseQuery,
  queryTable,
} from "../operations/table-data.ts";

/** Tables have no LSM write spec, without which local lancedb refuses to read or write through its log. */
export const mustNotUseLsm = [(on: boolean) => !on, "must be false: the table has no LSM write spec"] as const;

const numbersOf = list(z.number(), items.dimensions);

/** The full-text query of the protocol, except for a search in several columns, which has one text for all of them. */
export const RemoteFtsQuery = z
  .object({
    match: optional(MatchQuery),
    phrase: optional(PhraseQuery),
    get boost() {
      return optional(
        z.object({ positive: RemoteFtsQuery, negative: RemoteFtsQuery, negative_boost: optional(z.number()) }),
      );
    },
    multi_match: optional(
      z.object({
        query: text(characters.text),
        columns: list(fieldPath, items.clauses).min(1),
        boost: optional(list(z.number(), items.clauses)),
      }),
    ),
    get boolean() {
      return optional(
        z.object({
          should: list(RemoteFtsQuery, items.clauses),
          must: list(RemoteFtsQuery, items.clauses),
          must_not: list(RemoteFtsQuery, items.clauses),
        }),
      );
    },
  })
  .meta({ id: "RemoteFtsQuery" });
export type RemoteFtsQuery = z.infer<typeof RemoteFtsQuery>;

const query = {
  branch,
  version: optional(count),
  k: z
    .number()
    .min(0)
    .meta({ override: { type: "integer", minimum: 0 } })
    .describe("The maximum number of rows; 2^63-1 for all rows."),
  offset: optional(count),
  columns: optional(z.union([list(fieldPath, items.columns), map(sqlExpression(), items.columns)])).describe(
    "Names of columns, or an SQL expression for each name.",
  ),
  filter: optional(sqlExpression()),
  prefilter: optional(z.boolean()),
  with_row_id: optional(z.boolean()),
  fast_search: optional(z.boolean()),
  use_lsm: optional(z.boolean().refine(...mustNotUseLsm)),
  vector: optional(z.union([numbersOf, list(numbersOf, items.vectors)])).describe(
    "The vector to find neighbors of. Empty for no vector search; an array of arrays for several searches.",
  ),
  vector_column: optional(fieldPath),
  distance_type: optional(text(characters.name)),
  lower_bound: optional(z.number()),
  upper_bound: optional(z.number()),
  nprobes: optional(count.max(numbers.partitions)),
  minimum_nprobes: optional(count.max(numbers.partitions)),
  maximum_nprobes: optional(count.max(numbers.partitions)).describe(
    "The maximum number of partitions to search; 0 for no limit.",
  ),
  ef: optional(count.max(numbers.candidates)),
  refine_factor: optional(count.max(numbers.candidates)),
  bypass_vector_index: optional(z.boolean()),
  full_text_query: optional(
    z.object({
      query: z.union([text(characters.text), RemoteFtsQuery]),
      columns: optional(list(fieldPath, items.columns)),
    }),
  ),
  order_by: optional(
    list(
      z.object({
        column_name: fieldPath,
        ascending: optional(z.boolean()),
        nulls_first: optional(z.boolean()),
      }),
      items.clauses,
    ),
  ),
};

export const RemoteQuery = z.object({ ...commonRequest, ...query }).meta({ id: "RemoteQuery" });
export type RemoteQuery = z.infer<typeof RemoteQuery>;

export const remoteQueryTable = defineContract({
  operationId: "QueryTable",
  summary: "Query a table; the response is an Arrow file",
  path: "/v1/table/{id}/query/",
  body: RemoteQuery,
  response: queryTable.response,
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});

export const remoteExplainTableQueryPlan = defineContract({
  operationId: "ExplainTableQueryPlan",
  summary: "Explain the plan of a query",
  path: "/v1/table/{id}/explain_plan/",
  body: z.object({ ...commonRequest, query: RemoteQuery, verbose: optional(z.boolean()) }),
  response: explainTableQueryPlan.response,
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});

export const remoteAnalyzeTableQueryPlan = defineContract({
  operationId: "AnalyzeTableQueryPlan",
  summary: "Run a query and return its plan with metrics",
  path: "/v1/table/{id}/analyze_plan/",
  body: RemoteQuery,
  response: analyzeTableQueryPlan.response,
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});
