import { z } from "zod";
import { characters, items, list, map, numberList, numbers, sqlExpression, sqlValue, text } from "../bounds.ts";
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
  Properties,
  queryBoolean,
  queryInteger,
  queryList,
  shownAs,
  TableProperties,
  word,
} from "../fields.ts";
import { jsonOrUndefined } from "../json.ts";

const transaction_id = z.string().optional();

/** A map of texts in a query parameter, as JSON. */
const queryMap = (schema: typeof Properties) =>
  text(characters.path)
    .transform(jsonOrUndefined)
    .refine((value) => value !== undefined, "must be JSON")
    .pipe(schema)
    .meta(shownAs({ type: "string" }));

export const createTable = defineContract({
  operationId: "CreateTable",
  summary: "Create a table from an Arrow stream",
  path: "/v1/table/{id}/create",
  content: "arrow",
  query: z.object({
    mode: word(["Create", "ExistOk", "Overwrite"]).optional(),
    properties: queryMap(TableProperties).optional().describe("The table's properties, as a JSON object."),
    storage_options: queryMap(Properties)
      .optional()
      .describe("Not supported: the catalog writes with its own options."),
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
      predicate: sqlExpression().min(1).optional(),
      updates: fieldChanges(list(sqlValue(), 2).min(2), ([path]) => path).describe(
        "Pairs of a field's path and the SQL expression of its new value.",
      ),
      properties: Properties.optional().describe(
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

const term = { terms: text(characters.text), column: fieldPath.optional() };

export const MatchQuery = z
  .object({
    ...term,
    boost: z.number().optional(),
    fuzziness: count.max(numbers.candidates).optional(),
    max_expansions: count.max(numbers.candidates).optional(),
    operator: word(["And", "Or"]).optional(),
    prefix_length: count.max(numbers.candidates).optional(),
  })
  .meta({ id: "MatchQuery" });

export const PhraseQuery = z
  .object({ ...term, slop: count.max(numbers.candidates).optional() })
  .meta({ id: "PhraseQuery" });

/** A full-text query. Exactly one of its members determines the kind. */
export const FtsQuery = z
  .object({
    match: MatchQuery.optional(),
    phrase: PhraseQuery.optional(),
    get boost() {
      return z.object({ positive: FtsQuery, negative: FtsQuery, negative_boost: z.number().optional() }).optional();
    },
    multi_match: z.object({ match_queries: list(MatchQuery, items.clauses).min(1) }).optional(),
    get boolean() {
      return z
        .object({
          should: list(FtsQuery, items.clauses),
          must: list(FtsQuery, items.clauses),
          must_not: list(FtsQuery, items.clauses),
        })
        .optional();
    },
  })
  .meta({ id: "FtsQuery" });
export type FtsQuery = z.infer<typeof FtsQuery>;

/** A query on the rows of a table, which is the body of QueryTable and related operations. */
const query = {
  branch,
  version: count.optional().describe("The number of the version; the latest one when absent."),
  k: count.describe("The maximum number of rows."),
  offset: count.optional(),
  columns: z
    .object({
      column_names: list(fieldPath, items.columns).optional(),
      column_aliases: map(sqlExpression(characters.path).min(1), items.columns).optional(),
    })
    .optional(),
  filter: sqlExpression().optional(),
  prefilter: z.boolean().optional().describe("Applies the filter before the search; true when absent."),
  with_row_id: z.boolean().optional(),
  fast_search: z.boolean().optional(),
  vector: z
    .object({
      single_vector: numberList(items.dimensions).optional(),
      multi_vector: list(numberList(items.dimensions), items.vectors).optional(),
    })
    .optional(),
  vector_column: fieldPath.optional(),
  distance_type: text(characters.name).optional(),
  lower_bound: z.number().optional(),
  upper_bound: z.number().optional(),
  nprobes: count.max(numbers.partitions).optional().describe("Ignored with minimum_nprobes or maximum_nprobes."),
  minimum_nprobes: z.int().min(1).max(numbers.partitions).optional(),
  maximum_nprobes: z.int().min(1).max(numbers.partitions).optional(),
  ef: count.max(numbers.candidates).optional(),
  refine_factor: count.max(numbers.candidates).optional(),
  bypass_vector_index: z.boolean().optional(),
  full_text_query: z
    .object({
      string_query: z
        .object({ query: text(characters.text), columns: list(fieldPath, items.columns).optional() })
        .optional(),
      structured_query: z.object({ query: FtsQuery }).optional(),
    })
    .optional(),
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
    .object({ ...commonRequest, branch, version: count.optional(), predicate: sqlExpression().optional() })
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
    .object({ ...commonRequest, branch, query: QueryTableRequest, verbose: z.boolean().optional() })
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
