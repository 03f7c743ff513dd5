import { z } from "zod";
import { characters, items, list, map, numbers, sqlExpression, text } from "../bounds.ts";
import { arrowFile, defineContract, onPath } from "../contract.ts";
import {
  AnsweredProperties,
  branch,
  commonRequest,
  context,
  count,
  datasetErrors,
  datasetReadErrors,
  fieldChanges,
  fieldPath,
  optional,
  Properties,
  queryBoolean,
  queryInteger,
  queryList,
  shownAs,
  word,
} from "../fields.ts";

const transaction_id = z.string().optional();

/** A map of texts in a query parameter, as JSON. */
const queryMap = text(characters.path)
  .transform((given, context): unknown => {
    try {
      return JSON.parse(given);
    } catch {
      context.addIssue({ code: "custom", message: "must be JSON" });
      return z.NEVER;
    }
  })
  .pipe(Properties)
  .meta(shownAs({ type: "string" }));

export const createTable = defineContract({
  operationId: "CreateTable",
  summary: "Create a table from an Arrow stream",
  path: "/v1/table/{id}/create",
  content: "arrow",
  query: z.object({
    mode: word(["Create", "ExistOk", "Overwrite"]).optional(),
    properties: queryMap.optional().describe("The table's properties, as a JSON object."),
    storage_options: queryMap.optional().describe("Not supported: the catalog writes with its own options."),
  }),
  response: z
    .object({
      context,
      transaction_id,
      location: z.string(),
      version: count.optional(),
      storage_options: z.record(z.string(), z.string()).optional(),
      properties: AnsweredProperties,
    })
    .meta({ id: "CreateTableResponse" }),
  errors: datasetErrors,
  access: onPath("writer", "committer"),
  bodyAccess: (request) => (request.mode === "Overwrite" ? onPath("writer")(request) : []),
  onRows: true,
});

export const insertIntoTable = defineContract({
  operationId: "InsertIntoTable",
  summary: "Insert rows into a table",
  path: "/v1/table/{id}/insert",
  content: "arrow",
  query: z.object({ branch: text(characters.name).optional(), mode: word(["Append", "Overwrite"]).optional() }),
  response: z
    .object({ context, transaction_id, num_inserted_rows: count, version: count })
    .meta({ id: "InsertIntoTableResponse" }),
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

export const mergeInsertIntoTable = defineContract({
  operationId: "MergeInsertIntoTable",
  summary: "Merge rows into a table",
  path: "/v1/table/{id}/merge_insert",
  content: "arrow",
  query: z.object({
    branch: text(characters.name).optional(),
    on: queryList(fieldPath, items.columns).describe("The fields whose values together identify a row."),
    when_matched_update_all: queryBoolean.optional(),
    when_matched_update_all_filt: sqlExpression().optional(),
    when_not_matched_insert_all: queryBoolean.optional(),
    when_not_matched_by_source_delete: queryBoolean.optional(),
    when_not_matched_by_source_delete_filt: sqlExpression().optional(),
    timeout: text(characters.name)
      .regex(/^\d{1,9}(ms|s|m|h)$/, "must be a number with ms, s, m or h, such as 30s")
      .optional(),
    use_index: queryBoolean.optional(),
  }),
  response: z
    .object({
      context,
      transaction_id,
      num_updated_rows: count,
      num_inserted_rows: count,
      num_deleted_rows: count,
      version: count,
    })
    .meta({ id: "MergeInsertIntoTableResponse" }),
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

export const updateTable = defineContract({
  operationId: "UpdateTable",
  summary: "Update rows of a table",
  path: "/v1/table/{id}/update",
  body: z
    .object({
      ...commonRequest,
      branch,
      predicate: optional(sqlExpression().min(1)),
      updates: fieldChanges(list(sqlExpression(), 2).min(2), ([path]) => path).describe(
        "Pairs of a field's path and the SQL expression of its new value.",
      ),
      properties: optional(Properties).describe(
        "Not supported: the operation does not change the properties of the table.",
      ),
    })
    .meta({ id: "UpdateTableRequest" }),
  response: z
    .object({ context, transaction_id, updated_rows: count, version: count, properties: AnsweredProperties.optional() })
    .meta({ id: "UpdateTableResponse" }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
  onRows: true,
});

export const deleteFromTable = defineContract({
  operationId: "DeleteFromTable",
  summary: "Delete rows of a table",
  path: "/v1/table/{id}/delete",
  body: z
    .object({
      ...commonRequest,
      branch,
      predicate: sqlExpression().min(1).describe("A condition on rows, as SQL; `true` deletes all rows."),
    })
    .meta({ id: "DeleteFromTableRequest" }),
  response: z.object({ context, transaction_id, version: count.optional() }).meta({ id: "DeleteFromTableResponse" }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
  onRows: true,
});

const term = { terms: text(characters.text), column: optional(fieldPath) };

export const MatchQuery = z
  .object({
    ...term,
    boost: optional(z.number()),
    fuzziness: optional(count.max(numbers.candidates)),
    max_expansions: optional(count.max(numbers.candidates)),
    operator: optional(word(["And", "Or"])),
    prefix_length: optional(count.max(numbers.candidates)),
  })
  .meta({ id: "MatchQuery" });

export const PhraseQuery = z
  .object({ ...term, slop: optional(count.max(numbers.candidates)) })
  .meta({ id: "PhraseQuery" });

/** A full-text query. Exactly one of its members determines the kind. */
export const FtsQuery = z
  .object({
    match: optional(MatchQuery),
    phrase: optional(PhraseQuery),
    get boost() {
      return optional(z.object({ positive: FtsQuery, negative: FtsQuery, negative_boost: optional(z.number()) }));
    },
    multi_match: optional(z.object({ match_queries: list(MatchQuery, items.clauses).min(1) })),
    get boolean() {
      return optional(
        z.object({
          should: list(FtsQuery, items.clauses),
          must: list(FtsQuery, items.clauses),
          must_not: list(FtsQuery, items.clauses),
        }),
      );
    },
  })
  .meta({ id: "FtsQuery" });
export type FtsQuery = z.infer<typeof FtsQuery>;

/** A query on the rows of a table, which is the body of QueryTable and related operations. */
const query = {
  branch,
  version: optional(count).describe("The number of the version; the latest one when absent."),
  k: count.describe("The maximum number of rows."),
  offset: optional(count),
  columns: optional(
    z.object({
      column_names: optional(list(fieldPath, items.columns)),
      column_aliases: optional(map(sqlExpression(characters.path).min(1), items.columns)),
    }),
  ),
  filter: optional(sqlExpression()),
  prefilter: optional(z.boolean()).describe("Applies the filter before the search; true when absent."),
  with_row_id: optional(z.boolean()),
  fast_search: optional(z.boolean()),
  vector: optional(
    z.object({
      single_vector: optional(list(z.number(), items.dimensions)),
      multi_vector: optional(list(list(z.number(), items.dimensions), items.vectors)),
    }),
  ),
  vector_column: optional(fieldPath),
  distance_type: optional(text(characters.name)),
  lower_bound: optional(z.number()),
  upper_bound: optional(z.number()),
  nprobes: optional(count.max(numbers.partitions)).describe("Ignored with minimum_nprobes or maximum_nprobes."),
  minimum_nprobes: optional(z.int().min(1).max(numbers.partitions)),
  maximum_nprobes: optional(z.int().min(1).max(numbers.partitions)),
  ef: optional(count.max(numbers.candidates)),
  refine_factor: optional(count.max(numbers.candidates)),
  bypass_vector_index: optional(z.boolean()),
  full_text_query: optional(
    z.object({
      string_query: optional(
        z.object({ query: text(characters.text), columns: optional(list(fieldPath, items.columns)) }),
      ),
      structured_query: optional(z.object({ query: FtsQuery })),
    }),
  ),
};

export const QueryTableRequest = z.object({ ...commonRequest, ...query }).meta({ id: "QueryTableRequest" });
export type QueryTableRequest = z.infer<typeof QueryTableRequest>;

export const queryTable = defineContract({
  operationId: "QueryTable",
  summary: "Query a table; the response is an Arrow file",
  path: "/v1/table/{id}/query",
  body: QueryTableRequest,
  response: arrowFile,
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});

export const countTableRows = defineContract({
  operationId: "CountTableRows",
  summary: "Count the rows of a table",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/count_rows",
  query: z.object({
    branch: text(characters.name).optional(),
    version: queryInteger(0).optional(),
    predicate: sqlExpression().optional(),
  }),
  body: z
    .object({ ...commonRequest, branch, version: optional(count), predicate: optional(sqlExpression()) })
    .meta({ id: "CountTableRowsRequest" }),
  response: count,
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});

export const explainTableQueryPlan = defineContract({
  operationId: "ExplainTableQueryPlan",
  summary: "Explain the plan of a query",
  path: "/v1/table/{id}/explain_plan",
  body: z
    .object({ ...commonRequest, branch, query: QueryTableRequest, verbose: optional(z.boolean()) })
    .meta({ id: "ExplainTableQueryPlanRequest" }),
  response: z.string(),
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});

export const analyzeTableQueryPlan = defineContract({
  operationId: "AnalyzeTableQueryPlan",
  summary: "Run a query and return its plan with metrics",
  path: "/v1/table/{id}/analyze_plan",
  body: z.object({ ...commonRequest, ...query }).meta({ id: "AnalyzeTableQueryPlanRequest" }),
  response: z.string(),
  errors: datasetReadErrors,
  bodySize: "large",
  access: onPath("reader"),
  onRows: true,
});
