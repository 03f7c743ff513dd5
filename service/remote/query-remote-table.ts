import { analyzeTableQueryPlan } from "../operations/analyze-table-query-plan.ts";
import { explainTableQueryPlan } from "../operations/explain-table-query-plan.ts";
import type { Handler } from "../operations/handler.ts";
import { queryTable } from "../operations/query-table.ts";
import { toProtocol } from "./remote-query.ts";

export const remoteQueryTable: Handler<"remoteQueryTable"> = (request, catalog, caller) =>
  queryTable({ ...request, ...toProtocol(request) }, catalog, caller);

export const remoteExplainTableQueryPlan: Handler<"remoteExplainTableQueryPlan"> = (request, catalog, caller) =>
  explainTableQueryPlan(
    { ...request, branch: undefined, query: { ...toProtocol(request.query), id: undefined } },
    catalog,
    caller,
  );

export const remoteAnalyzeTableQueryPlan: Handler<"remoteAnalyzeTableQueryPlan"> = (request, catalog, caller) =>
  analyzeTableQueryPlan({ ...request, ...toProtocol(request) }, catalog, caller);
