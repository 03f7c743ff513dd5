import { z } from "zod";
import { characters, numbers, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, count, fieldPath, branch as inBranch, word } from "../fields.ts";
import { jobFields } from "../operations/job-options.ts";

/** The response of operations that open maintenance jobs. */
const MaintenanceResponse = z
  .object({ context, job_id: z.string().describe("The id of the job.") })
  .meta({ id: "MaintenanceResponse" });

/** The branch is part of the schema so that other branches are rejected instead of ignored, which would change `main`. */
const branch = inBranch.describe("Only `main`: jobs do not maintain other branches.");

/** The fields about the execution of a job on many workers. */
const running = {
  ...jobFields,
  concurrency: count
    .min(1)
    .optional()
    .describe("The maximum number of concurrent Ray tasks; when absent all CPUs but one, and 8 on Kubernetes."),
  cluster: text(characters.name).optional(),
};

export const compactFields = { ...running, target_rows_per_fragment: count.min(1).optional() };

/** The types of indices that jobs build. */
const jobIndexTypes = [
  ...(["BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "FTS", "INVERTED", "RTREE"] as const),
  ...(["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ"] as const),
] as const;

export const buildIndexFields = {
  ...running,
  column: fieldPath,
  index_type: word(jobIndexTypes),
  name: text(characters.name)
    .min(1)
    .optional()
    .describe("The name of the index; the column with the suffix `_idx` when absent."),
  distance_type: word(["l2", "cosine", "dot", "hamming"]).optional(),
  num_partitions: count.min(1).max(numbers.partitions).optional(),
  num_sub_vectors: count.min(1).max(numbers.subVectors).optional(),
};

export const cleanUpFields = {
  ...jobFields,
  cluster: running.cluster,
  older_than_seconds: count
    .optional()
    .describe("The minimum age in seconds of versions to delete; 14 days when absent."),
  keep_versions: count
    .min(1)
    .optional()
    .describe("The number of the latest versions to keep regardless of their age; 1 when absent."),
};

export const compactTable = defineContract({
  operationId: "CompactTable",
  summary: "Open a job that merges small fragments and removes deleted rows",
  path: "/management/v1/table/{id}/compact",
  body: z.object({ ...commonRequest, branch, ...compactFields }).meta({ id: "CompactTableRequest" }),
  response: MaintenanceResponse,
  status: 202,
  errors: [404, 409, 429],
  access: onPath("writer"),
});

export const buildTableIndex = defineContract({
  operationId: "BuildTableIndex",
  summary: "Open a job that builds an index on Ray, and replaces one of the same name",
  path: "/management/v1/table/{id}/build_index",
  body: z.object({ ...commonRequest, branch, ...buildIndexFields }).meta({ id: "BuildTableIndexRequest" }),
  response: MaintenanceResponse,
  status: 202,
  errors: [404, 409, 429],
  access: onPath("writer"),
});

export const cleanUpTable = defineContract({
  operationId: "CleanUpTable",
  summary: "Open a job that deletes old versions of main and the files that no other version uses",
  path: "/management/v1/table/{id}/clean_up",
  body: z.object({ ...commonRequest, branch, ...cleanUpFields }).meta({ id: "CleanUpTableRequest" }),
  response: MaintenanceResponse,
  status: 202,
  errors: [404, 409, 429],
  access: onPath("writer"),
});
