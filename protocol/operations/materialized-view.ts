import { defineUnsupported } from "../contract.ts";

export const createMaterializedView = defineUnsupported({
  operationId: "CreateMaterializedView",
  summary: "Create a materialized view",
  path: "/v1/materialized_view/{id}/create",
  role: "writer",
});

export const refreshMaterializedView = defineUnsupported({
  operationId: "RefreshMaterializedView",
  summary: "Refresh a materialized view",
  path: "/v1/materialized_view/{id}/refresh",
  role: "writer",
});
