import { z } from "zod";
import { characters, items, list, numbers, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, count, datasetErrors, datasetReadErrors, fieldPath, optional } from "../fields.ts";
import { createTableIndex } from "../operations/table-index.ts";

const mustBeOff = optional(z.boolean()).describe("Must be false: the catalog's library does not have it.");

/** The options of full-text indices that the client sends even if they are disabled. */
const unsupported = {
  index_operators: mustBeOff,
  lance_tokenizer: optional(text(characters.name)).describe("Must be absent, as above."),
  preserve_original: mustBeOff,
  split_identifiers: mustBeOff,
  split_on_numerics: mustBeOff,
};

export const remoteCreateTableIndex = defineContract({
  operationId: "CreateTableIndex",
  summary: "Create an index on a column of a table; the answer comes when it is there",
  path: "/v1/table/{id}/create_index/",
  body: createTableIndex.body.extend({
    metric_type: optional(text(characters.name)).describe("As distance_type."),
    max_token_length: count
      .max(numbers.tokenLength)
      .nullish()
      .transform((length) => (length === null ? numbers.tokenLength : length))
      .describe("No limit when null."),
    custom_stop_words: optional(list(text(characters.name), items.columns)),
    min_ngram_length: optional(count.min(1).max(64)),
    max_ngram_length: optional(count.min(1).max(64)),
    prefix_only: optional(z.boolean()),
    block_size: optional(z.int().min(1).max(numbers.blockSize)),
    replace: optional(z.boolean()).describe("Whether an index of the same name is replaced, as by default."),
    ...unsupported,
  }),
  response: createTableIndex.response,
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

export const prewarmTableIndex = defineContract({
  operationId: "PrewarmTableIndex",
  summary: "Read an index into the catalog's cache, as far as it has room",
  path: "/v1/table/{id}/index/{index_name}/prewarm/",
  response: z.object({}),
  errors: datasetReadErrors,
  access: onPath("reader"),
  onRows: true,
});

export const prewarmTableData = defineContract({
  operationId: "PrewarmTableData",
  summary: "Open a table for the requests to come; its rows have no cache",
  path: "/v1/table/{id}/page_cache/prewarm/",
  body: z.object({ ...commonRequest, columns: optional(list(fieldPath, items.columns)) }),
  response: z.object({}),
  errors: datasetReadErrors,
  access: onPath("reader"),
  onRows: true,
});
