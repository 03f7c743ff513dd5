import { z } from "zod";
import { characters, items, list, text } from "../bounds.ts";
import { type Access, anywhere, defineContract, inDatabase, onPath } from "../contract.ts";
import {
  branch,
  commonRequest,
  context,
  count,
  exactlyOneOf,
  id,
  Properties,
  pageQuery,
  pageResponse,
  queryBoolean,
} from "../fields.ts";
import { DeclareTableRequest, DeclareTableResponse, DeregisterTableRequest, DeregisterTableResponse } from "./table.ts";

export const TableVersion = z
  .object({
    version: count,
    manifest_path: z.string().describe("The path of the manifest in the store of the table, without a leading slash."),
    manifest_size: count.optional().describe("The size in bytes."),
    e_tag: z.string().optional(),
    timestamp_millis: z.int().optional(),
    metadata: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: "TableVersion" });
export type TableVersion = z.infer<typeof TableVersion>;

/** The fields that create a version, individually and in a batch. */
const newVersion = {
  version: count,
  branch,
  manifest_path: text(characters.path).min(1),
  manifest_size: count.optional(),
  e_tag: text(characters.name).optional(),
  metadata: Properties.optional(),
  naming_scheme: z.enum(["V1", "V2"]).optional(),
};

const CreateTableVersionRequest = z
  .object({ ...commonRequest, ...newVersion })
  .meta({ id: "CreateTableVersionRequest" });
const CreateTableVersionResponse = z
  .object({ context, transaction_id: z.string().optional(), version: TableVersion })
  .meta({ id: "CreateTableVersionResponse" });

export const createTableVersion = defineContract({
  operationId: "CreateTableVersion",
  summary: "Commit a version of a table",
  path: "/v1/table/{id}/version/create",
  body: CreateTableVersionRequest,
  response: CreateTableVersionResponse,
  errors: [404, 409],
  idempotent: true,
  access: onPath("writer", "committer"),
});

export const listTableVersions = defineContract({
  operationId: "ListTableVersions",
  summary: "List the versions of a table, oldest first",
  path: "/v1/table/{id}/version/list",
  query: z.object({
    branch: text(characters.name).optional(),
    ...pageQuery,
    descending: queryBoolean.optional().describe("Sorts the latest version first."),
  }),
  response: z
    .object({ context, versions: z.array(TableVersion), ...pageResponse })
    .meta({ id: "ListTableVersionsResponse" }),
  errors: [404],
  access: onPath("reader"),
});

export const describeTableVersion = defineContract({
  operationId: "DescribeTableVersion",
  summary: "Describe a version of a table; the latest one by default",
  path: "/v1/table/{id}/version/describe",
  body: z.object({ ...commonRequest, version: count.optional(), branch }).meta({ id: "DescribeTableVersionRequest" }),
  response: z.object({ context, version: TableVersion }).meta({ id: "DescribeTableVersionResponse" }),
  errors: [404],
  access: onPath("reader"),
});

const VersionRange = z
  .object({
    start_version: z.int().describe("The first version of the range, at least 0."),
    end_version: z
      .int()
      .describe("The version after the last one of the range; -1 for all versions through the latest one."),
  })
  .meta({ id: "VersionRange" });

const BatchDeleteTableVersionsRequest = z
  .object({ ...commonRequest, branch, ranges: list(VersionRange, items.ranges) })
  .meta({ id: "BatchDeleteTableVersionsRequest" });
const BatchDeleteTableVersionsResponse = z
  .object({ context, deleted_count: count, transaction_id: z.string().optional() })
  .meta({ id: "BatchDeleteTableVersionsResponse" });

export const batchDeleteTableVersions = defineContract({
  operationId: "BatchDeleteTableVersions",
  summary: "Delete version records of a table and keep its data",
  path: "/v1/table/{id}/version/delete",
  body: BatchDeleteTableVersionsRequest,
  response: BatchDeleteTableVersionsResponse,
  errors: [404],
  bodySize: "large",
  access: onPath("writer"),
});

export const batchCreateTableVersions = defineContract({
  operationId: "BatchCreateTableVersions",
  summary: "Commit versions of several tables, all or none",
  path: "/v1/table/version/batch-create",
  body: z
    .object({
      ...commonRequest,
      entries: list(z.object({ ...newVersion, id }).meta({ id: "CreateTableVersionEntry" }), items.batch).min(1),
    })
    .meta({ id: "BatchCreateTableVersionsRequest" }),
  response: z
    .object({ context, transaction_id: z.string().optional(), versions: z.array(TableVersion) })
    .meta({ id: "BatchCreateTableVersionsResponse" }),
  errors: [404, 409],
  bodySize: "large",
  access: anywhere("writer"),
  bodyAccess: (request) =>
    request.entries.map((entry): Access => ({ role: "writer", object: inDatabase(request, entry.id) })),
});

const CommitTableOperation = exactlyOneOf({
  declare_table: DeclareTableRequest.optional(),
  create_table_version: CreateTableVersionRequest.optional(),
  delete_table_versions: BatchDeleteTableVersionsRequest.optional(),
  deregister_table: DeregisterTableRequest.optional(),
})
  .refine((operation) => Object.values(operation).every((each) => each === undefined || each.id !== undefined), {
    message: "must name its table by id",
  })
  .meta({ id: "CommitTableOperation" });

const CommitTableResult = z
  .object({
    declare_table: DeclareTableResponse.optional(),
    create_table_version: CreateTableVersionResponse.optional(),
    delete_table_versions: BatchDeleteTableVersionsResponse.optional(),
    deregister_table: DeregisterTableResponse.optional(),
  })
  .meta({ id: "CommitTableResult" });

export const batchCommitTables = defineContract({
  operationId: "BatchCommitTables",
  summary: "Commit a batch of table operations, all or none",
  path: "/v1/table/batch-commit",
  body: z
    .object({ ...commonRequest, operations: list(CommitTableOperation, items.batch).min(1) })
    .meta({ id: "BatchCommitTablesRequest" }),
  response: z
    .object({ context, transaction_id: z.string().optional(), results: z.array(CommitTableResult) })
    .meta({ id: "BatchCommitTablesResponse" }),
  errors: [404, 409],
  bodySize: "large",
  access: anywhere("writer"),
  bodyAccess: (request) =>
    request.operations
      .flatMap((operation) => Object.values(operation))
      .filter((each) => each !== undefined)
      .map((each): Access => ({ role: "writer", object: inDatabase(request, each.id ?? []) })),
});
