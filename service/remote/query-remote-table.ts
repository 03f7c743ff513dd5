import type { remoteContracts } from "@tiltyard/protocol";
import { analyzeTableQueryPlan } from "../operations/analyze-table-query-plan.ts";
import { explainTableQueryPlan } from "../operations/explain-table-query-plan.ts";
import type { Handler } from "../operations/handler.ts";
import { queryTable } from "../operations/query-table.ts";
import { toProtocol } from "./remote-query.ts";

export const remoteQueryTable: Handler<typeof remoteContracts.remoteQueryTable> = (request, catalog, caller) =>
  queryTable({ ...request, ...toProtocol(request) }, catalog, caller);

export const remoteExplainTableQueryPlan: Handler<typeof remoteContracts.remoteExplainTableQueryPlan> = (
  request,
  catalog,
  caller,
) =>
  explainTableQueryPlan(
    { ...request, branch: undefined, query: { ...toProtocol(request.query), id: undefined } },
    catalog,
    caller,
  );

export const remoteAnalyzeTableQueryPlan: Handler<typeof remoteContracts.remoteAnalyzeTableQueryPlan> = (
  request,
  catalog,
  caller,
) => analyzeTableQueryPlan({ ...request, ...toProtocol(request) }, catalog, caller);
