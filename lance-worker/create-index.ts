import type { Index } from "@lancedb/lancedb";
import { CatalogError, type JsonArrowSchema, ownValue } from "@tiltyard/protocol";
import { findField } from "./field-path.ts";
import type { Lancedb } from "./lancedb.ts";
import type { IndexRequest } from "./wire.ts";

/** The types of indices that CreateTableIndex builds. Scalar ones are also those of CreateTableScalarIndex. */
export const scalarTypes = ["BTREE", "BITMAP", "LABEL_LIST", "FTS", "INVERTED", "FM"];
const vectorTypes = ["IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ"];

const distances = ["l2", "cosine", "dot", "hamming"] as const;

/** Returns a distance as the library spells it. @throws CatalogError InvalidInput */
export function distanceOf(name: string): (typeof distances)[number] {
  const found = distances.find((each) => each === name.toLowerCase());
  if (found !== undefined) return found;
  throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
}

/** The options of full-text indices that only Lance's other libraries support. */
const ftsOptionsElsewhere = [
  ...(["index_operators", "lance_tokenizer", "preserve_original"] as const),
  ...(["split_identifiers", "split_on_numerics"] as const),
];

/** The library's constructor of each type, and the options that only Lance's other libraries support for it. */
const types: Readonly<Record<string, readonly [keyof Lancedb["Index"] & string, ...(keyof IndexRequest)[]]>> = {
  BTREE: ["btree"],
  BITMAP: ["bitmap"],
  LABEL_LIST: ["labelList"],
  FM: ["fm"],
  FTS: ["fts", ...ftsOptionsElsewhere],
  INVERTED: ["fts", ...ftsOptionsElsewhere],
  IVF_FLAT: ["ivfFlat", "target_partition_size"],
  IVF_PQ: ["ivfPq", "target_partition_size"],
  IVF_RQ: ["ivfRq", "target_partition_size"],
  IVF_HNSW_PQ: ["hnswPq", "target_partition_size", "num_bits"],
  IVF_HNSW_SQ: ["hnswSq", "target_partition_size"],
};
/** The types that only Lance's other libraries can build. */
const typesElsewhere = ["ZONEMAP", "BLOOMFILTER", "NGRAM", "RTREE", "IVF_SQ", "IVF_HNSW_FLAT"];

/**
 * Returns the library's index for a request. Options of other types are ignored.
 *
 * @throws CatalogError InvalidInput for an unknown type; Unsupported for a type or an option that the library does not
 * support.
 */
export function indexOf(library: Lancedb["Index"], request: IndexRequest): Index {
  const name = request.index_type.toUpperCase();
  if (typesElsewhere.includes(name))
    throw new CatalogError("Unsupported", `index_type: this catalog cannot build ${name}; pylance and lancedb can`);
  const [make, ...lacks] = ownValue(types, name) ?? [];
  if (make === undefined)
    throw new CatalogError("InvalidInput", `index_type: must be one of ${[...scalarTypes, ...vectorTypes].join(", ")}`);
  // A disabled option is not a request for it.
  const lacking = lacks.find((option) => request[option] !== undefined && request[option] !== false);
  if (lacking !== undefined)
    throw new CatalogError("Unsupported", `${lacking}: this catalog cannot build ${name} with this option. Omit it`);
  // Each constructor reads its own options only.
  return (library[make] as (options: object) => Index)({
    distanceType: request.distance_type === undefined ? undefined : distanceOf(request.distance_type),
    numPartitions: request.num_partitions,
    numSubVectors: request.num_sub_vectors,
    numBits: request.num_bits,
    maxIterations: request.max_iterations,
    sampleRate: request.sample_rate,
    m: request.m,
    efConstruction: request.ef_construction,
    withPosition: request.with_position,
    baseTokenizer: tokenizerOf(request),
    language: languageOf(request),
    maxTokenLength: request.max_token_length,
    lowercase: request.lower_case,
    stem: request.stem,
    removeStopWords: request.remove_stop_words,
    customStopWords: request.custom_stop_words,
    asciiFolding: request.ascii_folding,
    ngramMinLength: request.min_ngram_length,
    ngramMaxLength: request.max_ngram_length,
    prefixOnly: request.prefix_only,
    blockSize: request.block_size,
  });
}

/**
 * Validates the column of an index that compares by hamming distance, because the library panics without bits.
 *
 * @throws CatalogError InvalidInput
 */
export function requireBits(request: IndexRequest, { fields }: JsonArrowSchema): void {
  if (request.distance_type?.toLowerCase() !== "hamming") return;
  const { type } = findField(fields, request.column)?.field ?? {};
  if (request.index_type.toUpperCase() === "IVF_FLAT" && type?.fields?.[0]?.type.type === "uint8") return;
  throw new CatalogError("InvalidInput", "distance_type: hamming requires index_type IVF_FLAT and vectors of uint8");
}

const tokenizers = /^(simple|whitespace|raw|ngram|icu|icu\/split|(jieba|lindera)(\/\w[\w.-]*)+)$/;

/** Validates the name, because the library reads a language model from the folder of that name. */
function tokenizerOf({ base_tokenizer: name }: IndexRequest) {
  if (name === undefined || tokenizers.test(name)) return name;
  throw new CatalogError(
    "InvalidInput",
    "base_tokenizer: must be simple, whitespace, raw, ngram, icu, icu/split, or jieba/ or lindera/ with a model",
  );
}

const languages = [
  ...["Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian"],
  ...["Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish"],
];

/** Validates the language, because an unknown one crashes the process of the library. */
function languageOf({ language }: IndexRequest): string | undefined {
  if (language === undefined) return undefined;
  const found = languages.find((each) => each.toLowerCase() === language.toLowerCase());
  if (found === undefined) throw new CatalogError("InvalidInput", `language: must be one of ${languages.join(", ")}`);
  return found;
}
