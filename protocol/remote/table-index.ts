import { z } from "zod";
import { characters, items, list, numbers, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, count, datasetErrors, datasetReadErrors, fieldPath } from "../fields.ts";
import { createTableIndex } from "../operations/table-index.ts";

const mustBeOff = z
  .boolean()
  .optional()
  .describe("Must be false: the Lance library of the catalog does not support it.");

/** The options of full-text indices that the client sends even if they are disabled. */
const unsupported = {
  index_operators: mustBeOff,
  lance_tokenizer: text(characters.name)
    .optional()
    .describe("Must be absent: the Lance library of the catalog does not support it."),
  preserve_original: mustBeOff,
  split_identifiers: mustBeOff,
  split_on_numerics: mustBeOff,
};

export const remoteCreateTableIndex = defineContract({
  operationId: "CreateTableIndex",
  summary: "Create an index on a column of a table; the response follows the creation",
  path: "/v1/table/{id}/create_index/",
  body: createTableIndex.body.extend({
    metric_type: text(characters.name).optional().describe("The same as `distance_type`."),
    max_token_length: count
      .max(numbers.tokenLength)
      .nullish()
      .transform((length) => (length === null ? numbers.tokenLength : length))
      .describe("The maximum length of a token; no limit when null."),
    custom_stop_words: list(text(characters.name), items.columns).optional(),
    min_ngram_length: count.min(1).max(64).optional(),
    max_ngram_length: count.min(1).max(64).optional(),
    prefix_only: z.boolean().optional(),
    block_size: z.int().min(1).max(numbers.blockSize).optional(),
    replace: z.boolean().optional().describe("Replaces an index of the same name; true when absent."),
    ...unsupported,
  }),
  response: createTableIndex.response,
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

export const prewarmTableIndex = defineContract({
  operationId: "PrewarmTableIndex",
  summary: "Read an index into the cache of the catalog, up to its size",
  path: "/v1/table/{id}/index/{index_name}/prewarm/",
  response: z.object({}),
  errors: datasetReadErrors,
  access: onPath("reader"),
  onRows: true,
});

export const prewarmTableData = defineContract({
  operationId: "PrewarmTableData",
  summary: "Open a table for later requests; rows are not cached",
  path: "/v1/table/{id}/page_cache/prewarm/",
  body: z.object({ ...commonRequest, columns: list(fieldPath, items.columns).optional() }),
  response: z.object({}),
  errors: datasetReadErrors,
  access: onPath("reader"),
  onRows: true,
});
