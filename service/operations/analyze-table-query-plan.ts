import type { contracts } from "@tiltyard/protocol";
import { buildQuery } from "../dataset/query.ts";
import type { Handler } from "./handler.ts";

export const analyzeTableQueryPlan: Handler<typeof contracts.analyzeTableQueryPlan> = async (request, { datasets }) => {
  await using dataset = await datasets.openVersion(request);
  return dataset.run((table) => buildQuery(dataset.lancedb, table, request).analyzePlan());
};
