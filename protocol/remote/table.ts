import { z } from "zod";
import { JsonArrowSchema } from "../arrow.ts";
import { characters, items, list, text } from "../bounds.ts";
import { defineContract, inDatabase, onPath } from "../contract.ts";
import { branch, commonRequest, count, datasetErrors, datasetReadErrors, id, queryInteger } from "../fields.ts";
import { alterTableAddColumns, NewColumn, renamedTo, renameTable } from "../operations/table.ts";
import { createTable } from "../operations/table-data.ts";
import { listTableTags, TagContents } from "../operations/table-tag.ts";
import { listTableVersions } from "../operations/table-version.ts";
import { withSlash } from "./dialect.ts";
import { FunctionColumns } from "./function.ts";

export const remoteListTables = defineContract({
  operationId: "ListTables",
  summary: "List the tables of the root, or of the client's database, by name",
  methods: ["GET"],
  path: "/v1/table/",
  query: z.object({
    page_token: text(characters.path).optional().describe("The name of the table after which the list begins."),
    limit: queryInteger(1).optional(),
  }),
  response: z.object({ tables: z.array(z.string()) }),
  errors: [404],
  access: onPath("reader"),
});

export const remoteCreateTable = {
  ...withSlash(createTable),
  summary: "Create a table from an Arrow stream; 400 with the message that the client recognizes if the table exists",
};

export const remoteDescribeTable = defineContract({
  operationId: "DescribeTable",
  summary: "Describe a table with its version and its schema, with Lance's names of types",
  path: "/v1/table/{id}/describe/",
  body: z.object({ ...commonRequest, version: count.optional(), branch }),
  response: z.object({ table: z.string(), version: count, location: z.string(), schema: JsonArrowSchema }),
  errors: datasetReadErrors,
  access: onPath("reader"),
});

export const remoteRenameTable = defineContract({
  operationId: "RenameTable",
  summary: "Rename a table, or move it to another namespace",
  path: "/v1/table/{id}/rename/",
  body: z.object({
    ...commonRequest,
    new_table_name: text(characters.name).min(1),
    new_namespace: id.optional().describe("The new namespace in the client's database; the present one when absent."),
  }),
  response: renameTable.response,
  errors: renameTable.errors,
  access: onPath("writer"),
  bodyAccess: (request) => [
    { role: "writer", object: renamedTo({ ...request, new_namespace_id: request.new_namespace }) },
  ],
});

export const remoteListTableTags = defineContract({
  operationId: "ListTableTags",
  summary: "List all tags of a table, without an enclosing object",
  path: "/v1/table/{id}/tags/list/",
  response: z.record(z.string(), TagContents),
  errors: listTableTags.errors,
  access: onPath("reader"),
});

export const remoteListTableVersions = defineContract({
  operationId: "ListTableVersions",
  summary: "List all versions of a table, oldest first",
  path: "/v1/table/{id}/version/list/",
  query: z.object({ branch: text(characters.name).optional() }),
  response: listTableVersions.response,
  errors: listTableVersions.errors,
  access: onPath("reader"),
});

const writeSpec = { errors: datasetReadErrors, access: onPath("reader") };
const specBody = z.object({ ...commonRequest, branch });

export const getLsmWriteSpec = defineContract({
  ...writeSpec,
  operationId: "GetLsmWriteSpec",
  summary: "Return the LSM write spec of a table, which is always null",
  path: "/v1/table/{id}/get_lsm_write_spec/",
  body: specBody,
  response: z.object({ lsm_write_spec: z.null() }),
});

export const getLsmStats = defineContract({
  ...writeSpec,
  operationId: "GetLsmStats",
  summary: "Return the statistics of LSM writes, which are always null",
  path: "/v1/table/{id}/get_lsm_stats/",
  body: specBody.extend({ include_generation_rows: z.boolean().optional() }),
  response: z.object({ lsm_stats: z.null() }),
});

export const getRteSpec = defineContract({
  ...writeSpec,
  operationId: "GetRteSpec",
  summary: "Return the LSM write spec of a table to lancedb 0.41, which is always null",
  path: "/v1/table/{id}/get_rte_spec/",
  body: specBody,
  response: z.object({ rte_spec: z.null() }),
});

export const getRteStats = defineContract({
  ...writeSpec,
  operationId: "GetRteStats",
  summary: "Return the statistics of LSM writes to lancedb 0.41, which are always null",
  path: "/v1/table/{id}/get_rte_stats/",
  body: specBody.extend({ include_sstable_rows: z.boolean().optional() }),
  response: z.object({ rte_stats: z.null() }),
});

const allNull = z.boolean().optional().describe("True for a column that `function` computes.");

/** A year, above which an interval would be a mistake. */
const intervalMaxSeconds = 365 * 86_400;

export const remoteAlterTableAddColumns = defineContract({
  operationId: "AlterTableAddColumns",
  summary: "Add columns to a table, from expressions or from an Arrow schema without values",
  path: "/v1/table/{id}/add_columns/",
  content: "either",
  query: z.object({ branch: text(characters.name).optional() }),
  body: alterTableAddColumns.body.extend({
    new_columns: list(NewColumn.extend({ all_null: allNull }), items.columns)
      .min(1)
      .optional(),
    function: FunctionColumns.optional().describe("The Function that computes the columns with `all_null`."),
    auto_refresh_enabled: z
      .boolean()
      .optional()
      .describe(
        "True to refresh computed columns after commits with new or changed rows, where the operator allows it.",
      ),
    auto_refresh_interval_seconds: z
      .int()
      .min(1)
      .max(intervalMaxSeconds)
      .optional()
      .describe("The minimum interval between two automatic refreshes."),
  }),
  response: alterTableAddColumns.response,
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
  bodyAccess: (request) => {
    if (request.function === undefined) return [];
    const { namespace_path = [] } = request.function.application.function;
    return [{ role: "reader", object: inDatabase(request, namespace_path) }];
  },
});
