import { z } from "zod";
import { JsonArrowDataType, JsonArrowSchema } from "../arrow.ts";
import { characters, entries, items, list, map, sqlExpression, text } from "../bounds.ts";
import { defineContract, inDatabase, noContent, onPath } from "../contract.ts";
import {
  AnsweredProperties,
  branch,
  columnName,
  commonRequest,
  context,
  count,
  datasetErrors,
  datasetReadErrors,
  fieldChanges,
  fieldPath,
  id,
  Properties,
  queryBoolean,
  TableProperties,
  word,
} from "../fields.ts";
import type { Identifier } from "../identifier.ts";
import { errorPolicyFields, jobFields, withJobOptions } from "./job-options.ts";

const StorageOptions = z.record(z.string(), z.string());

export const DeclareTableRequest = z
  .object({
    ...commonRequest,
    location: text(characters.path)
      .min(1)
      .optional()
      .describe("The URI of the folder of the table; chosen by the catalog when absent."),
    vend_credentials: z.boolean().optional(),
    properties: TableProperties.optional(),
  })
  .meta({ id: "DeclareTableRequest" });

export const DeclareTableResponse = z
  .object({
    context,
    transaction_id: z.string().optional(),
    location: z.string(),
    storage_options: StorageOptions.optional(),
    properties: AnsweredProperties,
    managed_versioning: z.boolean(),
  })
  .meta({ id: "DeclareTableResponse" });

export const declareTable = defineContract({
  operationId: "DeclareTable",
  summary: "Declare a table without touching storage",
  path: "/v1/table/{id}/declare",
  body: DeclareTableRequest,
  response: DeclareTableResponse,
  errors: [404, 409],
  access: onPath("writer", "committer"),
});

export const registerTable = defineContract({
  operationId: "RegisterTable",
  summary: "Register an existing Lance table at a location",
  path: "/v1/table/{id}/register",
  body: z
    .object({
      ...commonRequest,
      location: text(characters.path).min(1),
      mode: word(["Create", "Overwrite"]).optional(),
      properties: TableProperties.optional(),
    })
    .meta({ id: "RegisterTableRequest" }),
  response: z
    .object({ context, transaction_id: z.string().optional(), location: z.string(), properties: AnsweredProperties })
    .meta({ id: "RegisterTableResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
});

const described = { with_table_uri: z.boolean(), load_detailed_metadata: z.boolean(), check_declared: z.boolean() };

export const describeTable = defineContract({
  operationId: "DescribeTable",
  summary: "Describe a table",
  path: "/v1/table/{id}/describe",
  query: z.object({
    with_table_uri: queryBoolean.optional(),
    load_detailed_metadata: queryBoolean.optional(),
    check_declared: queryBoolean.optional(),
  }),
  body: z
    .object({
      ...commonRequest,
      version: count.optional(),
      tag: text(characters.name).optional(),
      branch,
      with_table_uri: described.with_table_uri.optional(),
      load_detailed_metadata: described.load_detailed_metadata.optional(),
      check_declared: described.check_declared.optional(),
      vend_credentials: z.boolean().optional(),
    })
    .meta({ id: "DescribeTableRequest" }),
  response: z
    .object({
      context,
      table: z.string().optional(),
      namespace: z.array(z.string()).optional(),
      version: count.optional(),
      location: z.string(),
      table_uri: z.string().optional(),
      schema: JsonArrowSchema.optional(),
      storage_options: StorageOptions.optional(),
      stats: z.object({ num_deleted_rows: count, num_fragments: count }).optional(),
      metadata: AnsweredProperties.optional(),
      properties: AnsweredProperties,
      managed_versioning: z.boolean(),
      is_only_declared: z.boolean().optional(),
    })
    .meta({ id: "DescribeTableResponse" }),
  errors: [404, 406, 409],
  access: onPath("reader"),
});

export const tableExists = defineContract({
  operationId: "TableExists",
  summary: "Check that a table exists",
  path: "/v1/table/{id}/exists",
  body: z.object({ ...commonRequest, version: count.optional() }).meta({ id: "TableExistsRequest" }),
  response: noContent,
  errors: [404],
  access: onPath("reader"),
});

/** The response fields for a table that no longer exists. */
const goneTable = {
  context,
  transaction_id: z.string().optional(),
  id: id.optional(),
  location: z.string().optional(),
  properties: AnsweredProperties.optional(),
};

export const dropTable = defineContract({
  operationId: "DropTable",
  summary: "Drop a table and delete its data",
  path: "/v1/table/{id}/drop",
  response: z.object(goneTable).meta({ id: "DropTableResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
});

export const DeregisterTableRequest = z.object(commonRequest).meta({ id: "DeregisterTableRequest" });
export const DeregisterTableResponse = z.object(goneTable).meta({ id: "DeregisterTableResponse" });

export const deregisterTable = defineContract({
  operationId: "DeregisterTable",
  summary: "Remove a table from the catalog and keep its data",
  path: "/v1/table/{id}/deregister",
  body: DeregisterTableRequest,
  response: DeregisterTableResponse,
  errors: [404],
  access: onPath("writer"),
});

export const renameTable = defineContract({
  operationId: "RenameTable",
  summary: "Rename a table, or move it to another namespace",
  path: "/v1/table/{id}/rename",
  body: z
    .object({ ...commonRequest, new_table_name: text(characters.name).min(1), new_namespace_id: id.optional() })
    .meta({ id: "RenameTableRequest" }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "RenameTableResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
  bodyAccess: (request) => [{ role: "writer", object: renamedTo(request) }],
});

/** Returns the new identifier of a table. Java's client sends an empty `new_namespace_id` if it is unset. */
export function renamedTo(request: {
  readonly id: Identifier;
  readonly database?: Identifier | undefined;
  readonly new_table_name: string;
  readonly new_namespace_id?: Identifier | undefined;
}): Identifier {
  const { id: present, new_namespace_id: requested = [], new_table_name: name } = request;
  return [...(requested.length > 0 ? inDatabase(request, requested) : present.slice(0, -1)), name];
}

const nullableInteger = z.int().optional();

/** The fields of a backfill, which are the parameters of its job. */
export const backfillFields = {
  column: text(characters.path).min(1).describe("A computed column."),
  where: sqlExpression().optional().describe("A condition on rows, as SQL; those without a value when absent."),
  concurrency: nullableInteger,
  intra_applier_concurrency: nullableInteger,
  min_checkpoint_size: nullableInteger,
  max_checkpoint_size: nullableInteger,
  batch_checkpoint_flush_interval_seconds: z.number().optional(),
  read_version: nullableInteger,
  task_size: nullableInteger,
  num_frags: nullableInteger,
  checkpoint_size: nullableInteger,
  commit_granularity: nullableInteger,
  cluster: text(characters.name).optional(),
  manifest: text(characters.document)
    .optional()
    .describe(
      "The manifest of Geneva: the packages, files and images for the function, as JSON, or the name of one that Geneva defined.",
    ),
  ...errorPolicyFields,
  ...jobFields,
};

export const alterTableBackfillColumns = defineContract({
  operationId: "AlterTableBackfillColumns",
  summary: "Open a job that fills a computed column",
  path: "/v1/table/{id}/backfill_column",
  body: withJobOptions(
    z.object({
      ...commonRequest,
      branch,
      ...backfillFields,
    }),
  ).meta({ id: "AlterTableBackfillColumnsRequest" }),
  response: z
    .object({ context, job_id: z.string().describe("The id of the transaction that tracks the job.") })
    .meta({ id: "AlterTableBackfillColumnsResponse" }),
  status: 202,
  errors: [404, 409, 429],
  bodySize: "large",
  access: onPath("writer"),
});

/** The response fields of a change of columns or metadata, including the created version. */
const changed = { context, transaction_id: z.string().optional(), version: count };

export const restoreTable = defineContract({
  operationId: "RestoreTable",
  summary: "Restore a table to an earlier version",
  path: "/v1/table/{id}/restore",
  body: z.object({ ...commonRequest, branch, version: count }).meta({ id: "RestoreTableRequest" }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "RestoreTableResponse" }),
  errors: datasetErrors,
  access: onPath("writer"),
});

export const updateTableSchemaMetadata = defineContract({
  operationId: "UpdateTableSchemaMetadata",
  summary: "Replace the metadata of a table's schema",
  path: "/v1/table/{id}/schema_metadata/update",
  query: z.object({ branch: text(characters.name).optional() }),
  body: z.object({ metadata: map(text(characters.document), entries.properties, characters.document) }),
  bareField: "metadata",
  response: AnsweredProperties,
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
});

const FieldMetadataUpdate = z
  .object({
    path: fieldPath,
    metadata: map(text(characters.text).nullable(), entries.properties).describe(
      "The metadata to set by key; null deletes a key.",
    ),
    replace: z.boolean().optional().describe("Replaces all metadata of the field."),
  })
  .meta({ id: "UpdateFieldMetadataEntry" });

export const updateFieldMetadata = defineContract({
  operationId: "UpdateFieldMetadata",
  summary: "Update the metadata of a table's fields",
  path: "/v1/table/{id}/update_field_metadata",
  body: z
    .object({ ...commonRequest, branch, updates: fieldChanges(FieldMetadataUpdate, ({ path }) => path) })
    .meta({ id: "UpdateFieldMetadataRequest" }),
  response: z
    .object({ ...changed, fields: z.record(z.string(), z.record(z.string(), z.string())) })
    .meta({ id: "UpdateFieldMetadataResponse" }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
});

const rowsOfFragments = z.object({
  min: count,
  max: count,
  mean: count,
  p25: count,
  p50: count,
  p75: count,
  p99: count,
});

export const getTableStats = defineContract({
  operationId: "GetTableStats",
  summary: "Return the statistics of a table",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/stats",
  query: z.object({ branch: text(characters.name).optional() }),
  body: z.object({ ...commonRequest, branch }).meta({ id: "GetTableStatsRequest" }),
  response: z
    .object({
      context,
      total_bytes: count,
      num_rows: count,
      num_indices: count,
      fragment_stats: z.object({ num_fragments: count, num_small_fragments: count, lengths: rowsOfFragments }),
    })
    .meta({ id: "GetTableStatsResponse" }),
  errors: datasetReadErrors,
  access: onPath("reader"),
});

/** A column that a function of a user computes in jobs. */
const VirtualColumn = z
  .object({
    input_columns: list(fieldPath, items.columns).optional(),
    image: text(characters.name).optional(),
    udf: text(characters.document).optional(),
    udf_name: text(characters.name).optional(),
    udf_version: text(characters.name).optional(),
    udf_backend: text(characters.name).optional(),
    auto_backfill: z.boolean().optional(),
    manifest: text(characters.document).optional(),
    manifest_checksum: text(characters.name).optional(),
    field_metadata: Properties.optional(),
  })
  .meta({ id: "AlterVirtualColumnEntry" });

const VirtualColumnOutput = z
  .object({
    column: text(characters.path).min(1),
    struct_field: text(characters.path),
    data_type: JsonArrowDataType,
    nullable: z.boolean(),
    metadata: Properties.optional(),
  })
  .meta({ id: "AddVirtualColumnOutputEntry" });

export const NewColumn = z
  .object({
    name: columnName,
    expression: sqlExpression()
      .optional()
      .describe("An SQL expression over other columns, which is computed once for the existing rows."),
    computed: sqlExpression()
      .optional()
      .describe("An SQL expression over other columns, which jobs compute for rows without a value."),
    virtual_column: VirtualColumn.extend({
      input_columns: list(fieldPath, items.columns),
      outputs: list(VirtualColumnOutput, items.outputs),
      image: text(characters.name),
      udf: z.base64().max(characters.document).describe("The function, as Geneva serializes it."),
      udf_name: text(characters.name),
      udf_version: text(characters.name),
    })
      .meta({ id: "AddVirtualColumnEntry" })
      .optional(),
  })
  .meta({ id: "AddColumnsEntry" });

export const alterTableAddColumns = defineContract({
  operationId: "AlterTableAddColumns",
  summary: "Add columns to a table",
  path: "/v1/table/{id}/add_columns",
  body: z
    .object({ ...commonRequest, branch, new_columns: list(NewColumn, items.columns).min(1) })
    .meta({ id: "AlterTableAddColumnsRequest" }),
  response: z.object(changed).meta({ id: "AlterTableAddColumnsResponse" }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
});

const ColumnAlteration = z
  .object({
    path: fieldPath,
    data_type: JsonArrowDataType.optional(),
    rename: columnName.optional(),
    nullable: z.boolean().optional(),
    virtual_column: VirtualColumn.optional(),
  })
  .meta({ id: "AlterColumnsEntry" });

export const alterTableAlterColumns = defineContract({
  operationId: "AlterTableAlterColumns",
  summary: "Change columns of a table",
  path: "/v1/table/{id}/alter_columns",
  body: z
    .object({ ...commonRequest, branch, alterations: fieldChanges(ColumnAlteration, ({ path }) => path) })
    .meta({ id: "AlterTableAlterColumnsRequest" }),
  response: z.object(changed).meta({ id: "AlterTableAlterColumnsResponse" }),
  errors: [...datasetErrors, 429],
  bodySize: "large",
  access: onPath("writer"),
});

export const alterTableDropColumns = defineContract({
  operationId: "AlterTableDropColumns",
  summary: "Drop columns of a table",
  path: "/v1/table/{id}/drop_columns",
  body: z
    .object({ ...commonRequest, branch, columns: list(fieldPath, items.columns).min(1) })
    .meta({ id: "AlterTableDropColumnsRequest" }),
  response: z.object(changed).meta({ id: "AlterTableDropColumnsResponse" }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
});
