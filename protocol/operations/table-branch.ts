import { defineUnsupported } from "../contract.ts";

export const listTableBranches = defineUnsupported({
  operationId: "ListTableBranches",
  summary: "List the branches of a table",
  path: "/v1/table/{id}/branches/list",
  role: "reader",
});

export const createTableBranch = defineUnsupported({
  operationId: "CreateTableBranch",
  summary: "Create a branch of a table",
  path: "/v1/table/{id}/branches/create",
  role: "writer",
});

export const deleteTableBranch = defineUnsupported({
  operationId: "DeleteTableBranch",
  summary: "Delete a branch of a table",
  path: "/v1/table/{id}/branches/delete",
  role: "writer",
});
