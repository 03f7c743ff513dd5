import { z } from "zod";
import { characters, numbers, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import {
  branch,
  commonRequest,
  context,
  count,
  datasetErrors,
  datasetReadErrors,
  fieldPath,
  pageResponse,
  queryInteger,
} from "../fields.ts";

const upTo = (most: number) => z.int().min(1).max(most).optional();

const newIndex = {
  ...commonRequest,
  branch,
  column: fieldPath,
  index_type: text(characters.name)
    .min(1)
    .describe("The type of the index, such as BTREE, BITMAP, LABEL_LIST, FTS, IVF_FLAT, IVF_PQ or IVF_HNSW_SQ."),
  name: text(characters.name)
    .min(1)
    .refine((name) => !name.startsWith("__lance"), "begins with __lance, which Lance reserves for its own indices")
    .optional(),
  distance_type: text(characters.name).optional(),
  num_partitions: upTo(numbers.partitions),
  num_sub_vectors: upTo(numbers.subVectors),
  num_bits: upTo(numbers.bits),
  sample_rate: upTo(numbers.samples),
  max_iterations: upTo(numbers.iterations),
  target_partition_size: upTo(numbers.partitions).describe("Not supported by this catalog: use `num_partitions`."),
  m: upTo(numbers.neighbours),
  ef_construction: upTo(numbers.candidates),
  with_position: z.boolean().optional(),
  base_tokenizer: text(characters.name).optional(),
  language: text(characters.name).optional(),
  max_token_length: count.max(numbers.tokenLength).optional(),
  lower_case: z.boolean().optional(),
  stem: z.boolean().optional(),
  remove_stop_words: z.boolean().optional(),
  ascii_folding: z.boolean().optional(),
};

export const createTableIndex = defineContract({
  operationId: "CreateTableIndex",
  summary: "Create an index on a column of a table",
  path: "/v1/table/{id}/create_index",
  body: z.object(newIndex).meta({ id: "CreateTableIndexRequest" }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "CreateTableIndexResponse" }),
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

export const createTableScalarIndex = defineContract({
  operationId: "CreateTableScalarIndex",
  summary: "Create a scalar index on a column of a table",
  path: "/v1/table/{id}/create_scalar_index",
  body: z.object(newIndex).meta({ id: "CreateTableScalarIndexRequest" }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "CreateTableScalarIndexResponse" }),
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

const version = count.optional().describe("The number of the version; the latest one when absent.");

export const listTableIndices = defineContract({
  operationId: "ListTableIndices",
  summary: "List the indices of a table",
  path: "/v1/table/{id}/index/list",
  body: z
    .object({
      ...commonRequest,
      branch,
      version,
      page_token: text(characters.token).optional(),
      limit: z.int().min(1).optional(),
    })
    .meta({ id: "ListTableIndicesRequest" }),
  response: z
    .object({
      context,
      indexes: z.array(
        z
          .object({
            index_name: z.string(),
            index_uuid: z.string(),
            columns: z.array(z.string()),
            status: z.string(),
            index_type: z.string().optional(),
            type_url: z.string().optional(),
            num_indexed_rows: count.optional(),
            num_unindexed_rows: count.optional(),
            size_bytes: count.optional(),
            num_segments: count.optional(),
            created_at: z.string().optional(),
            index_version: count.optional(),
            index_details: z.string().optional(),
          })
          .meta({ id: "IndexContent" }),
      ),
      ...pageResponse,
    })
    .meta({ id: "ListTableIndicesResponse" }),
  errors: datasetReadErrors,
  access: onPath("reader"),
});

export const describeTableIndexStats = defineContract({
  operationId: "DescribeTableIndexStats",
  summary: "Return the statistics of an index",
  methods: ["GET", "POST"],
  path: "/v1/table/{id}/index/{index_name}/stats",
  query: z.object({ branch: text(characters.name).optional(), version: queryInteger(0).optional() }),
  body: z
    .object({ ...commonRequest, branch, version, index_name: text(characters.name).optional() })
    .meta({ id: "DescribeTableIndexStatsRequest" }),
  response: z
    .object({
      context,
      distance_type: z.string().optional(),
      index_type: z.string().optional(),
      num_indexed_rows: count.optional(),
      num_unindexed_rows: count.optional(),
      num_indices: count.optional(),
    })
    .meta({ id: "DescribeTableIndexStatsResponse" }),
  errors: datasetReadErrors,
  access: onPath("reader"),
});

export const dropTableIndex = defineContract({
  operationId: "DropTableIndex",
  summary: "Drop an index of a table",
  path: "/v1/table/{id}/index/{index_name}/drop",
  query: z.object({ branch: text(characters.name).optional() }),
  response: z.object({ context, transaction_id: z.string().optional() }).meta({ id: "DropTableIndexResponse" }),
  errors: datasetErrors,
  access: onPath("writer"),
});
