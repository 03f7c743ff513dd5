import type { Index } from "@lancedb/lancedb";
import {
  CatalogError,
  type contracts,
  type JsonArrowSchema,
  type RequestOf,
  type remoteContracts,
} from "@tiltyard/protocol";
import { scalarTypes, vectorTypes } from "../index-types.ts";
import type { Lancedb } from "./lancedb.ts";

/** The request of the protocol with the options that only LanceDB's dialect has. */
export type IndexRequest = ProtocolRequest & Partial<Omit<RemoteRequest, keyof ProtocolRequest>>;
type ProtocolRequest = RequestOf<typeof contracts.createTableIndex>;
type RemoteRequest = RequestOf<typeof remoteContracts.remoteCreateTableIndex>;

/** The library's names of options by those of requests. */
const ivf = {
  distance_type: "distanceType",
  num_partitions: "numPartitions",
  max_iterations: "maxIterations",
  sample_rate: "sampleRate",
} as const;
const hnsw = { ...ivf, m: "m", ef_construction: "efConstruction" } as const;
const fts = {
  with_position: "withPosition",
  base_tokenizer: "baseTokenizer",
  language: "language",
  max_token_length: "maxTokenLength",
  lower_case: "lowercase",
  stem: "stem",
  remove_stop_words: "removeStopWords",
  custom_stop_words: "customStopWords",
  ascii_folding: "asciiFolding",
  min_ngram_length: "ngramMinLength",
  max_ngram_length: "ngramMaxLength",
  prefix_only: "prefixOnly",
  block_size: "blockSize",
} as const;

/** A type of index: the library's constructor, its options, and the options that only Lance's other libraries support. */
interface IndexType {
  readonly make: keyof Lancedb["Index"] & string;
  readonly options: Readonly<Record<string, string>>;
  readonly lacks?: readonly (keyof IndexRequest)[];
}
const lacks = {
  fts: ["index_operators", "lance_tokenizer", "preserve_original", "split_identifiers", "split_on_numerics"],
  vector: ["target_partition_size"],
  hnswPq: ["target_partition_size", "num_bits"],
} as const;

const types: Readonly<Record<string, IndexType>> = {
  BTREE: { make: "btree", options: {} },
  BITMAP: { make: "bitmap", options: {} },
  LABEL_LIST: { make: "labelList", options: {} },
  FM: { make: "fm", options: {} },
  FTS: { make: "fts", options: fts, lacks: lacks.fts },
  INVERTED: { make: "fts", options: fts, lacks: lacks.fts },
  IVF_FLAT: { make: "ivfFlat", options: ivf, lacks: lacks.vector },
  IVF_PQ: {
    make: "ivfPq",
    options: { ...ivf, num_sub_vectors: "numSubVectors", num_bits: "numBits" },
    lacks: lacks.vector,
  },
  IVF_RQ: { make: "ivfRq", options: { ...ivf, num_bits: "numBits" }, lacks: lacks.vector },
  IVF_HNSW_PQ: { make: "hnswPq", options: { ...hnsw, num_sub_vectors: "numSubVectors" }, lacks: lacks.hnswPq },
  IVF_HNSW_SQ: { make: "hnswSq", options: hnsw, lacks: lacks.vector },
};
/** The types that only Lance's other libraries can build. */
const typesElsewhere = ["ZONEMAP", "BLOOMFILTER", "NGRAM", "RTREE", "IVF_SQ", "IVF_HNSW_FLAT"];

/**
 * Returns the library's index for a request. Options of other types are ignored.
 *
 * @throws CatalogError InvalidInput for an unknown type; Unsupported for a type or an option that the library does not
 * support.
 */
export function indexOf(make: Lancedb["Index"], request: IndexRequest): Index {
  const name = request.index_type.toUpperCase();
  if (typesElsewhere.includes(name))
    throw new CatalogError("Unsupported", `index_type: this catalog cannot build ${name}; pylance and lancedb can`);
  const type = types[name];
  if (type === undefined)
    throw new CatalogError("InvalidInput", `index_type: must be one of ${[...scalarTypes, ...vectorTypes].join(", ")}`);
  // A disabled option is not a request for it.
  const lacking = type.lacks?.find((option) => request[option] !== undefined && request[option] !== false);
  if (lacking !== undefined)
    throw new CatalogError(
      "Unsupported",
      `${lacking}: this catalog cannot build ${name} with this option; leave it out`,
    );
  const values: Readonly<Record<string, unknown>> = {
    ...request,
    distance_type: distanceOf(request),
    base_tokenizer: tokenizerOf(request),
    language: languageOf(request),
  };
  const options = Object.entries(type.options).flatMap(([field, option]) =>
    values[field] === undefined ? [] : [[option, values[field]]],
  );
  // The table above binds each option to its constructor.
  return (make[type.make] as (options: object) => Index)(Object.fromEntries(options));
}

const distances = ["l2", "cosine", "dot", "hamming"];

function distanceOf({ distance_type }: IndexRequest): string | undefined {
  if (distance_type === undefined) return undefined;
  const found = distances.find((each) => each === distance_type.toLowerCase());
  if (found === undefined)
    throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
  return found;
}

/**
 * Validates the column of an index that compares by hamming distance, because the library panics without bits.
 *
 * @throws CatalogError InvalidInput
 */
export function requireBits(request: IndexRequest, { fields }: JsonArrowSchema): void {
  if (distanceOf(request) !== "hamming") return;
  const { type } = fields.find(({ name }) => name === request.column) ?? {};
  if (request.index_type.toUpperCase() === "IVF_FLAT" && type?.fields?.[0]?.type.type === "uint8") return;
  throw new CatalogError("InvalidInput", "distance_type: hamming needs an index IVF_FLAT on vectors of uint8");
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
