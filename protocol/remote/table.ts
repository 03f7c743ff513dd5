import { z } from "zod";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, count, datasetReadErrors, optional } from "../fields.ts";

export const describeRemoteTable = defineContract({
  operationId: "DescribeRemoteTable",
  summary: "Describe a table as LanceDB's remote client opens it",
  path: "/v1/table/{id}/describe/",
  body: z.object({ ...commonRequest, version: optional(count) }),
  response: z.object({ table: z.string(), version: count, location: z.string() }),
  errors: datasetReadErrors,
  access: onPath("reader"),
});
