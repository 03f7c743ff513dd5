import { defineUnsupported } from "../contract.ts";

export const createTable = defineUnsupported({
  operationId: "CreateTable",
  summary: "Create a table from an Arrow stream",
  path: "/v1/table/{id}/create",
  content: "arrow",
  role: "writer",
});

export const insertIntoTable = defineUnsupported({
  operationId: "InsertIntoTable",
  summary: "Insert rows into a table",
  path: "/v1/table/{id}/insert",
  content: "arrow",
  role: "writer",
});

export const mergeInsertIntoTable = defineUnsupported({
  operationId: "MergeInsertIntoTable",
  summary: "Merge rows into a table",
  path: "/v1/table/{id}/merge_insert",
  content: "arrow",
  role: "writer",
});

export const updateTable = defineUnsupported({
  operationId: "UpdateTable",
  summary: "Update rows of a table",
  path: "/v1/table/{id}/update",
  role: "writer",
});

export const deleteFromTable = defineUnsupported({
  operationId: "DeleteFromTable",
  summary: "Delete rows of a table",
  path: "/v1/table/{id}/delete",
  role: "writer",
});

export const queryTable = defineUnsupported({
  operationId: "QueryTable",
  summary: "Query a table",
  path: "/v1/table/{id}/query",
  role: "reader",
});

export const countTableRows = defineUnsupported({
  operationId: "CountTableRows",
  summary: "Count the rows of a table",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/count_rows",
  role: "reader",
});

export const explainTableQueryPlan = defineUnsupported({
  operationId: "ExplainTableQueryPlan",
  summary: "Explain the plan of a query",
  path: "/v1/table/{id}/explain_plan",
  role: "reader",
});

export const analyzeTableQueryPlan = defineUnsupported({
  operationId: "AnalyzeTableQueryPlan",
  summary: "Run a query and tell how its plan did",
  path: "/v1/table/{id}/analyze_plan",
  role: "reader",
});
