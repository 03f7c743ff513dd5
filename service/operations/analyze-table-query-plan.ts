import type { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const analyzeTableQueryPlan: Handler<typeof contracts.analyzeTableQueryPlan> = async (
  request,
  { rows },
  caller,
) => (await rows.read("analyze", { ...request, caller }, request)).result;
