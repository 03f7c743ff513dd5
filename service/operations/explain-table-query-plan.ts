import type { contracts } from "@tiltyard/protocol";
import { buildQuery } from "../dataset/query.ts";
import type { Handler } from "./handler.ts";

export const explainTableQueryPlan: Handler<typeof contracts.explainTableQueryPlan> = async (request, { datasets }) => {
  const { query, branch = query.branch, verbose = false } = request;
  await using dataset = await datasets.openVersion({ id: request.id, branch, version: query.version });
  return dataset.run((table) => buildQuery(dataset.lancedb, table, query).explainPlan(verbose));
};
