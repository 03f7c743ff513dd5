import { z } from "zod";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, count, datasetErrors, fieldPath, optional } from "../fields.ts";

const viewKinds = ["query", "udtf", "chunker"] as const;

const UdtfEntry = z
  .object({
    kind: z.enum(["udtf", "chunker"]),
    udtf: z.base64().describe("A UDTFSpec or ChunkerSpec, as JSON in Base64."),
    udtf_sha: z.string().describe("The SHA-256 of what is in `udtf`, in hexadecimal digits."),
    udtf_name: z.string(),
    udtf_version: z.string(),
    input_columns: optional(z.array(fieldPath)),
    partition_by: optional(fieldPath),
    partition_by_indexed_column: optional(fieldPath),
    num_cpus: optional(z.number()),
    num_gpus: optional(z.number()),
    memory: optional(z.int()).describe("In bytes."),
    error_handling: optional(z.record(z.string(), z.unknown())),
    batch: optional(z.boolean()),
    manifest: optional(z.string()),
    manifest_checksum: optional(z.string()).describe("The SHA-256 of `manifest`, in hexadecimal digits."),
  })
  .meta({ id: "MaterializedViewUdtfEntry" });
export type MaterializedViewUdtf = z.infer<typeof UdtfEntry>;

export const createMaterializedView = defineContract({
  operationId: "CreateMaterializedView",
  summary: "Create a materialized view, for the compute side to fill",
  path: "/v1/materialized_view/{id}/create",
  body: z
    .object({
      ...commonRequest,
      kind: z.enum(viewKinds),
      source_query: z.string().describe("Kept as it is: the compute side reads it."),
      output_schema: z.base64().describe("An Arrow schema as an IPC message, in Base64."),
      udtf_spec: optional(UdtfEntry),
      with_no_data: optional(z.boolean()).describe("False opens the first refresh; true when absent."),
      auto_refresh: optional(z.boolean()),
    })
    .meta({ id: "CreateMaterializedViewRequest" }),
  response: z
    .object({
      context,
      version: count.describe("The version that the view begins with, without rows."),
      job_id: z.string().optional().describe("The id of the transaction that tracks the first refresh."),
    })
    .meta({ id: "CreateMaterializedViewResponse" }),
  status: 201,
  errors: datasetErrors,
  access: onPath("writer"),
});

export const refreshMaterializedView = defineContract({
  operationId: "RefreshMaterializedView",
  summary: "Open the transaction of a materialized view's refresh, for the compute side to carry out",
  path: "/v1/materialized_view/{id}/refresh",
  body: z
    .object({
      ...commonRequest,
      src_version: optional(count),
      max_rows_per_fragment: optional(z.int()),
      concurrency: optional(z.int()),
      intra_applier_concurrency: optional(z.int()),
      source_task_size: optional(z.int()),
      cluster: optional(z.string()),
      output_limit: optional(z.int()).describe("Of chunker views only."),
      manifest: optional(z.string()),
    })
    .meta({ id: "RefreshMaterializedViewRequest" }),
  response: z
    .object({ context, job_id: z.string().describe("The id of the transaction that tracks the refresh.") })
    .meta({ id: "RefreshMaterializedViewResponse" }),
  status: 202,
  errors: [404, 409],
  access: onPath("writer"),
});
