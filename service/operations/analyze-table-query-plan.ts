import type { Handler } from "./handler.ts";

export const analyzeTableQueryPlan: Handler<"analyzeTableQueryPlan"> = async (request, { rows }, caller) =>
  (await rows.read("analyze", { ...request, caller }, request)).result;
