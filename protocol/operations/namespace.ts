import { z } from "zod";
import { defineContract, noContent, onPath } from "../contract.ts";
import {
  AnsweredProperties,
  commonRequest,
  context,
  Properties,
  pageQuery,
  pageResponse,
  queryBoolean,
  word,
} from "../fields.ts";

export const createNamespace = defineContract({
  operationId: "CreateNamespace",
  summary: "Create a namespace",
  path: "/v1/namespace/{id}/create",
  body: z
    .object({
      ...commonRequest,
      mode: word(["Create", "ExistOk", "Overwrite"]).optional(),
      properties: Properties.optional(),
    })
    .meta({ id: "CreateNamespaceRequest" }),
  response: z
    .object({ context, transaction_id: z.string().optional(), properties: AnsweredProperties })
    .meta({ id: "CreateNamespaceResponse" }),
  errors: [404, 409],
  access: onPath("writer", "committer"),
  // Overwrite drops the existing namespace, so it needs the right to drop.
  bodyAccess: (request) => (request.mode === "Overwrite" ? onPath("admin")(request) : []),
});

export const listNamespaces = defineContract({
  operationId: "ListNamespaces",
  summary: "List the child namespaces of a namespace",
  methods: ["GET"],
  path: "/v1/namespace/{id}/list",
  query: z.object(pageQuery),
  response: z
    .object({ context, namespaces: z.array(z.string()), ...pageResponse })
    .meta({ id: "ListNamespacesResponse" }),
  errors: [404],
  access: onPath("reader"),
});

export const describeNamespace = defineContract({
  operationId: "DescribeNamespace",
  summary: "Describe a namespace",
  path: "/v1/namespace/{id}/describe",
  response: z.object({ context, properties: AnsweredProperties }).meta({ id: "DescribeNamespaceResponse" }),
  errors: [404],
  access: onPath("reader"),
});

export const dropNamespace = defineContract({
  operationId: "DropNamespace",
  summary: "Drop a namespace",
  path: "/v1/namespace/{id}/drop",
  body: z
    .object({
      ...commonRequest,
      mode: word(["Fail", "Skip"]).optional(),
      behavior: word(["Restrict", "Cascade"]).optional(),
    })
    .meta({ id: "DropNamespaceRequest" }),
  response: z
    .object({ context, properties: AnsweredProperties.optional(), transaction_id: z.array(z.string()).optional() })
    .meta({ id: "DropNamespaceResponse" }),
  errors: [404, 409],
  access: onPath("admin"),
});

export const namespaceExists = defineContract({
  operationId: "NamespaceExists",
  summary: "Check that a namespace exists",
  path: "/v1/namespace/{id}/exists",
  response: noContent,
  errors: [404],
  access: onPath("reader"),
});

/** The query fields that both lists of tables share. */
const listTablesQuery = z.object({
  ...pageQuery,
  include_declared: queryBoolean.optional().describe("Includes tables without a version; true when absent."),
});
const ListTablesResponse = z
  .object({ context, tables: z.array(z.string()), ...pageResponse })
  .meta({ id: "ListTablesResponse" });

export const listTables = defineContract({
  operationId: "ListTables",
  summary: "List the tables of a namespace, by name",
  methods: ["GET"],
  path: "/v1/namespace/{id}/table/list",
  query: listTablesQuery,
  response: ListTablesResponse,
  errors: [404],
  access: onPath("reader"),
});

export const listAllTables = defineContract({
  operationId: "ListAllTables",
  summary: "List the tables of all namespaces, by full identifier",
  methods: ["GET"],
  path: "/v1/table",
  query: listTablesQuery,
  response: ListTablesResponse,
  access: () => [{ role: "reader", object: [] }],
});
