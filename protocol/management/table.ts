import { z } from "zod";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, id, pageQuery, pageResponse } from "../fields.ts";
import { timeMillis } from "./fields.ts";

/** The id of a dropped table, which the catalog stores in 32 bits. */
const droppedId = z.int32().min(0);

const DroppedTable = z
  .object({
    dropped_id: droppedId,
    id: id.describe("The identifier that the table had. Another table may have it now."),
    location: z.string(),
    dropped_at_millis: timeMillis,
    kept_until_millis: timeMillis,
  })
  .meta({ id: "DroppedTable" });

export const listDroppedTables = defineContract({
  operationId: "ListDroppedTables",
  summary: "List the dropped tables of a namespace and its descendants that can be undropped",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/dropped_table/list",
  query: z.object(pageQuery),
  response: z
    .object({ context, dropped_tables: z.array(DroppedTable), ...pageResponse })
    .meta({ id: "ListDroppedTablesResponse" }),
  access: onPath("reader"),
});

export const undropTable = defineContract({
  operationId: "UndropTable",
  summary: "Undrop a table with all its versions",
  path: "/management/v1/table/{id}/undrop",
  body: z
    .object({
      ...commonRequest,
      dropped_id: droppedId.describe(
        "The id from ListDroppedTables. The path contains the identifier that the table had.",
      ),
      new_id: id.optional().describe("The identifier after the undrop; the earlier one when absent."),
    })
    .meta({ id: "UndropTableRequest" }),
  response: z.object({ context, transaction_id: z.string(), id }).meta({ id: "UndropTableResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
  bodyAccess: (request) => [{ role: "writer", object: request.new_id ?? request.id }],
});

/** The response of protecting and of unprotecting a table. */
const ProtectionResponse = z
  .object({ context, transaction_id: z.string(), protected: z.boolean() })
  .meta({ id: "ProtectionResponse" });

export const protectTable = defineContract({
  operationId: "ProtectTable",
  summary: "Protect a table from drop and deregister",
  path: "/management/v1/table/{id}/protect",
  response: ProtectionResponse,
  errors: [404],
  access: onPath("admin"),
});

export const unprotectTable = defineContract({
  operationId: "UnprotectTable",
  summary: "Allow a table to be dropped again",
  path: "/management/v1/table/{id}/unprotect",
  response: ProtectionResponse,
  errors: [404],
  access: onPath("admin"),
});

export const listTableViews = defineContract({
  operationId: "ListTableViews",
  summary: "List the materialized views whose source is a table, as far as the caller may read them",
  methods: ["GET"],
  path: "/management/v1/table/{id}/view/list",
  query: z.object(pageQuery),
  response: z
    .object({ context, views: z.array(id).describe("The identifiers of the views."), ...pageResponse })
    .meta({ id: "ListTableViewsResponse" }),
  errors: [404],
  access: onPath("reader"),
});
