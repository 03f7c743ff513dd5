import type { Index } from "@lancedb/lancedb";
import { CatalogError, type contracts, type RequestOf, type remoteContracts } from "@tiltyard/protocol";
import { scalarTypes, vectorTypes } from "../index-types.ts";
import type { Lancedb } from "./lancedb.ts";

/** The protocol's request, with the options that only LanceDB's own dialect has. */
export type IndexRequest = ProtocolRequest & Partial<Omit<RemoteRequest, keyof ProtocolRequest>>;
type ProtocolRequest = RequestOf<typeof contracts.createTableIndex>;
type RemoteRequest = RequestOf<typeof remoteContracts.remoteCreateTableIndex>;

/** The library's names of options, by those of requests. */
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

/** How the library makes each type of index, and the options that the type has. */
const types: Readonly<Record<string, readonly [keyof Lancedb["Index"] & string, Readonly<Record<string, string>>]>> = {
  BTREE: ["btree", {}],
  BITMAP: ["bitmap", {}],
  LABEL_LIST: ["labelList", {}],
  FM: ["fm", {}],
  FTS: ["fts", fts],
  INVERTED: ["fts", fts],
  IVF_FLAT: ["ivfFlat", ivf],
  IVF_PQ: ["ivfPq", { ...ivf, num_sub_vectors: "numSubVectors", num_bits: "numBits" }],
  IVF_RQ: ["ivfRq", { ...ivf, num_bits: "numBits" }],
  IVF_HNSW_PQ: ["hnswPq", { ...hnsw, num_sub_vectors: "numSubVectors" }],
  IVF_HNSW_SQ: ["hnswSq", hnsw],
};

/** Fields of a request that are no options of its index. */
const general = ["id", "identity", "context", "branch", "column", "index_type", "name", "metric_type", "replace"];
const ofPath = ["indexName", "delimiter", "database"];

/**
 * Returns the library's index for a request.
 *
 * @throws CatalogError InvalidInput for an unknown type, and an option that it does not have; Unsupported for one that
 *   the library does not have.
 */
export function indexOf(make: Lancedb["Index"], request: IndexRequest): Index {
  const { index_type: given, ...fields } = request;
  const [maker, names] = types[given.toUpperCase()] ?? [];
  if (maker === undefined || names === undefined)
    throw new CatalogError("InvalidInput", `index_type: must be one of ${[...scalarTypes, ...vectorTypes].join(", ")}`);
  const checked: Readonly<Record<string, unknown>> = {
    ...fields,
    distance_type: distanceOf(request),
    base_tokenizer: tokenizerOf(request),
    language: languageOf(request),
  };
  const isGiven = ([name, value]: [string, unknown]) => value !== undefined && ![...general, ...ofPath].includes(name);
  const options = Object.entries(checked).filter(isGiven);
  // A switch that is off asks for nothing.
  const [superfluous] = options.find(([name, value]) => !(name in names) && value !== false) ?? [];
  if (superfluous !== undefined)
    throw new CatalogError(
      "Unsupported",
      `${superfluous}: this catalog cannot build an index of the type ${given} with this option; leave it out`,
    );
  const known = options.flatMap(([name, value]) => (names[name] === undefined ? [] : [[names[name], value]]));
  // The table above holds each option to its maker.
  return (make[maker] as (options: object) => Index)(Object.fromEntries(known));
}

const distances = ["l2", "cosine", "dot", "hamming"];

function distanceOf({ distance_type }: IndexRequest): string | undefined {
  if (distance_type === undefined) return undefined;
  const found = distances.find((each) => each === distance_type.toLowerCase());
  if (found === undefined)
    throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
  return found;
}

const tokenizers = /^(simple|whitespace|raw|ngram|icu|icu\/split|(jieba|lindera)(\/\w[\w.-]*)+)$/;

/** Checks the name: the library reads a language model from the folder of that name. */
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

/** Checks the language: an unknown one ends the process of the library. */
function languageOf({ language }: IndexRequest): string | undefined {
  if (language === undefined) return undefined;
  const found = languages.find((each) => each.toLowerCase() === language.toLowerCase());
  if (found === undefined) throw new CatalogError("InvalidInput", `language: must be one of ${languages.join(", ")}`);
  return found;
}
