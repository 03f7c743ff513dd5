import { defineUnsupported } from "../contract.ts";

export const createTableIndex = defineUnsupported({
  operationId: "CreateTableIndex",
  summary: "Create a vector index on a table",
  path: "/v1/table/{id}/create_index",
  role: "writer",
});

export const createTableScalarIndex = defineUnsupported({
  operationId: "CreateTableScalarIndex",
  summary: "Create a scalar index on a table",
  path: "/v1/table/{id}/create_scalar_index",
  role: "writer",
});

export const listTableIndices = defineUnsupported({
  operationId: "ListTableIndices",
  summary: "List the indices of a table",
  path: "/v1/table/{id}/index/list",
  role: "reader",
});

export const describeTableIndexStats = defineUnsupported({
  operationId: "DescribeTableIndexStats",
  summary: "Tell the statistics of an index",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/index/{index_name}/stats",
  role: "reader",
});

export const dropTableIndex = defineUnsupported({
  operationId: "DropTableIndex",
  summary: "Drop an index of a table",
  path: "/v1/table/{id}/index/{index_name}/drop",
  role: "writer",
});
