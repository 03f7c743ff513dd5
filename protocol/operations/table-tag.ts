import { defineUnsupported } from "../contract.ts";

export const listTableTags = defineUnsupported({
  operationId: "ListTableTags",
  summary: "List the tags of a table",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/tags/list",
  role: "reader",
});

export const getTableTagVersion = defineUnsupported({
  operationId: "GetTableTagVersion",
  summary: "Tell the version that a tag names",
  path: "/v1/table/{id}/tags/version",
  role: "reader",
});

export const createTableTag = defineUnsupported({
  operationId: "CreateTableTag",
  summary: "Tag a version of a table",
  path: "/v1/table/{id}/tags/create",
  role: "writer",
});

export const updateTableTag = defineUnsupported({
  operationId: "UpdateTableTag",
  summary: "Move a tag to another version",
  path: "/v1/table/{id}/tags/update",
  role: "writer",
});

export const deleteTableTag = defineUnsupported({
  operationId: "DeleteTableTag",
  summary: "Delete a tag of a table",
  path: "/v1/table/{id}/tags/delete",
  role: "writer",
});
