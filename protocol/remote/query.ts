import { z } from "zod";
import { characters, items, list, map, numberList, numbers, sqlExpression, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { branch, commonRequest, count, datasetReadErrors, fieldPath, word } from "../fields.ts";
import {
  analyzeTableQueryPlan,
  explainTableQueryPlan,
  MatchQuery,
  PhraseQuery,
  queryTable,
} from "../operations/table-data.ts";

/** Tables have no LSM write spec, without which local lancedb refuses to read or write through its log. */
export const mustNotUseLsm = [(on: boolean) => !on, "must be false: the table has no LSM write spec"] as const;
const useLsm = z
  .boolean()
  .refine(...mustNotUseLsm)
  .optional();

const numbersOf = numberList(items.dimensions);

/** The full-text query of the protocol, except for a search in several columns, which has one text for all of them. */
export const RemoteFtsQuery = z
  .object({
    match: MatchQuery.optional(),
    phrase: PhraseQuery.optional(),
    get boost() {
      return z
        .object({ positive: RemoteFtsQuery, negative: RemoteFtsQuery, negative_boost: z.number().optional() })
        .optional();
    },
    multi_match: z
      .object({
        query: text(characters.text),
        columns: list(fieldPath, items.clauses).min(1),
        boost: numberList(items.clauses).optional(),
        operator: word(["And", "Or"])
          .optional()
          .describe("`And` requires all words. LanceDB's clients do not send it."),
      })
      .optional(),
    get boolean() {
      return z
        .object({
          should: list(RemoteFtsQuery, items.clauses),
          must: list(RemoteFtsQuery, items.clauses),
          must_not: list(RemoteFtsQuery, items.clauses),
        })
        .optional();
    },
  })
  .meta({ id: "RemoteFtsQuery" });
export type RemoteFtsQuery = z.infer<typeof RemoteFtsQuery>;

const query = {
  branch,
  version: count.optional(),
  k: z
    .number()
    .min(0)
    .meta({ override: { type: "integer", minimum: 0 } })
    .describe("The maximum number of rows; 2^63-1 for all rows."),
  offset: count.optional(),
  columns: z
    .union([list(fieldPath, items.columns), map(sqlExpression(), items.columns)])
    .optional()
    .describe("Names of columns, or an SQL expression for each name."),
  filter: sqlExpression().optional(),
  prefilter: z.boolean().optional(),
  with_row_id: z.boolean().optional(),
  fast_search: z.boolean().optional(),
  use_lsm: useLsm,
  use_rte: useLsm,
  vector: z
    .union([numbersOf, list(numbersOf, items.vectors)])
    .optional()
    .describe("The vector to find neighbors of. Empty for no vector search; an array of arrays for several searches."),
  vector_column: fieldPath.optional(),
  distance_type: text(characters.name).optional(),
  lower_bound: z.number().optional(),
  upper_bound: z.number().optional(),
  nprobes: count.max(numbers.partitions).optional(),
  minimum_nprobes: count.max(numbers.partitions).optional(),
  maximum_nprobes: count
    .max(numbers.partitions)
    .optional()
    .describe("The maximum number of partitions to search; 0 for no limit."),
  ef: count.max(numbers.candidates).optional(),
  refine_factor: count.max(numbers.candidates).optional(),
  bypass_vector_index: z.boolean().optional(),
  full_text_query: z
    .object({
      query: z.union([text(characters.text), RemoteFtsQuery]),
      columns: list(fieldPath, items.columns).optional(),
    })
    .optional(),
  order_by: list(
    z.object({
      column_name: fieldPath,
      ascending: z.boolean().optional(),
      nulls_first: z.boolean().optional(),
    }),
    items.clauses,
  ).optional(),
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
  body: z.object({ ...commonRequest, query: RemoteQuery, verbose: z.boolean().optional() }),
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
