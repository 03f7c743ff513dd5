import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { branch, commonRequest, context, count, pageQuery, pageResponse } from "../fields.ts";

const tag = text(characters.name).min(1);
const tagged = { ...commonRequest, tag, version: count, branch };
const changed = { context, transaction_id: z.string().optional() };

export const TagContents = z
  .object({
    branch: z.string().optional().describe("Absent for the main branch."),
    version: count,
    manifestSize: count.describe("The size in bytes."),
  })
  .meta({ id: "TagContents" });

export const listTableTags = defineContract({
  operationId: "ListTableTags",
  summary: "List the tags of a table",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/tags/list",
  query: z.object(pageQuery),
  response: z
    .object({ context, tags: z.record(z.string(), TagContents), ...pageResponse })
    .meta({ id: "ListTableTagsResponse" }),
  errors: [404, 409],
  access: onPath("reader"),
});

export const getTableTagVersion = defineContract({
  operationId: "GetTableTagVersion",
  summary: "Return the version of a tag",
  path: "/v1/table/{id}/tags/version",
  body: z.object({ ...commonRequest, tag }).meta({ id: "GetTableTagVersionRequest" }),
  response: z
    .object({ context, version: count, branch: z.string().optional().describe("Absent for the main branch.") })
    .meta({ id: "GetTableTagVersionResponse" }),
  errors: [404, 409],
  access: onPath("reader"),
});

export const createTableTag = defineContract({
  operationId: "CreateTableTag",
  summary: "Tag a version of a table",
  path: "/v1/table/{id}/tags/create",
  body: z.object(tagged).meta({ id: "CreateTableTagRequest" }),
  response: z.object(changed).meta({ id: "CreateTableTagResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
});

export const updateTableTag = defineContract({
  operationId: "UpdateTableTag",
  summary: "Move a tag to another version",
  path: "/v1/table/{id}/tags/update",
  body: z.object(tagged).meta({ id: "UpdateTableTagRequest" }),
  response: z.object(changed).meta({ id: "UpdateTableTagResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
});

export const deleteTableTag = defineContract({
  operationId: "DeleteTableTag",
  summary: "Delete a tag of a table",
  path: "/v1/table/{id}/tags/delete",
  body: z.object({ ...commonRequest, tag }).meta({ id: "DeleteTableTagRequest" }),
  response: z.object(changed).meta({ id: "DeleteTableTagResponse" }),
  errors: [404, 409],
  access: onPath("writer"),
});
