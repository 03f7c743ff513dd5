import type { Handler } from "./handler.ts";

export const explainTableQueryPlan: Handler<"explainTableQueryPlan"> = async (request, { rows }, caller) => {
  const { query, branch = query.branch, verbose = false } = request;
  const at = { id: request.id, branch, version: query.version, caller };
  return (await rows.read("explain", at, { query, verbose })).result;
};
