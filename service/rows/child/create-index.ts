import type { Index } from "@lancedb/lancedb";
import { CatalogError, type contracts, type RequestOf } from "@tiltyard/protocol";
import { scalarTypes, vectorTypes } from "../index-types.ts";
import type { Lancedb } from "./lancedb.ts";

/** The protocol's request, with the options that only LanceDB's own dialect has. */
export interface IndexRequest extends RequestOf<typeof contracts.createTableIndex> {
  readonly custom_stop_words?: string[] | undefined;
  readonly min_ngram_length?: number | undefined;
  readonly max_ngram_length?: number | undefined;
  readonly prefix_only?: boolean | undefined;
}

/** Returns the library's index for a request. @throws CatalogError InvalidInput for an unknown type or option. */
export function indexOf(make: Lancedb["Index"], request: IndexRequest): Index {
  const ivf = defined({
    distanceType: distanceOf(request),
    numPartitions: request.num_partitions,
    maxIterations: request.max_iterations,
    sampleRate: request.sample_rate,
  });
  const pq = defined({ numSubVectors: request.num_sub_vectors, numBits: request.num_bits });
  const hnsw = defined({ m: request.m, efConstruction: request.ef_construction });
  switch (request.index_type.toUpperCase()) {
    case "BTREE":
      return make.btree();
    case "BITMAP":
      return make.bitmap();
    case "LABEL_LIST":
      return make.labelList();
    case "FM":
      return make.fm();
    case "FTS":
    case "INVERTED":
      return make.fts(
        defined({
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
        }),
      );
    case "IVF_FLAT":
      return make.ivfFlat(ivf);
    case "IVF_PQ":
      return make.ivfPq({ ...ivf, ...pq });
    case "IVF_RQ":
      return make.ivfRq({ ...ivf, ...defined({ numBits: request.num_bits }) });
    case "IVF_HNSW_PQ":
      return make.hnswPq({ ...ivf, ...hnsw, ...defined({ numSubVectors: request.num_sub_vectors }) });
    case "IVF_HNSW_SQ":
      return make.hnswSq({ ...ivf, ...hnsw });
    default:
      throw new CatalogError(
        "InvalidInput",
        `index_type: must be one of ${[...scalarTypes, ...vectorTypes].join(", ")}`,
      );
  }
}

const distances = ["l2", "cosine", "dot"] as const;

function distanceOf({ distance_type }: IndexRequest): (typeof distances)[number] | undefined {
  if (distance_type === undefined) return undefined;
  const found = distances.find((each) => each === distance_type.toLowerCase());
  if (found === undefined)
    throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
  return found;
}

const tokenizers = /^(simple|whitespace|raw|ngram|icu|icu\/split|(jieba|lindera)(\/\w[\w.-]*)+)$/;

/** Checks the name: the library reads a language model from the folder of that name. */
function tokenizerOf({ base_tokenizer: name }: IndexRequest) {
  if (name === undefined || tokenizers.test(name)) return name as "simple" | undefined;
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

type Defined<Options> = { [Name in keyof Options]?: Exclude<Options[Name], undefined> };

/** Removes undefined options. */
function defined<Options extends object>(options: Options): Defined<Options> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<Options>;
}
