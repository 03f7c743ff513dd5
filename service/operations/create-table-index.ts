import type { Index, IndexOptions } from "@lancedb/lancedb";
import { CatalogError, contracts, type RequestOf } from "@tiltyard/protocol";
import type { ChangeableDataset } from "../dataset/datasets.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.createTableIndex;

/** What the protocol asks for, and what LanceDB's own dialect asks besides. */
interface Request extends RequestOf<typeof contract> {
  readonly custom_stop_words?: string[] | undefined;
  readonly min_ngram_length?: number | undefined;
  readonly max_ngram_length?: number | undefined;
  readonly prefix_only?: boolean | undefined;
}

export const createTableIndex: Handler<typeof contract> = async (request, catalog, caller) => {
  if (request.target_partition_size !== undefined)
    throw new CatalogError("Unsupported", "target_partition_size: this catalog takes num_partitions");
  return createIndex(contract, request, catalog, caller);
};

/** Makes an index; the answer comes when it is there. */
export async function createIndex(
  by: typeof contracts.createTableIndex | typeof contracts.createTableScalarIndex,
  request: Request,
  { datasets }: Catalog,
  caller: AuthorizedCaller,
) {
  await using dataset = await datasets.openForChange({ contract: by, request, caller });
  const config = indexOf(dataset.lancedb.Index, request);
  const options: Partial<IndexOptions> = { config, ...(request.name !== undefined && { name: request.name }) };
  await dataset.run((table) => table.createIndex(request.column, options));
  return transactionOf(dataset);
}

export const scalarTypes = ["BTREE", "BITMAP", "LABEL_LIST", "FTS", "INVERTED", "FM"];
const vectorTypes = ["IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ"];

/** @throws CatalogError InvalidInput for a type that there is not. */
function indexOf(make: ChangeableDataset["lancedb"]["Index"], request: Request): Index {
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

function distanceOf({ distance_type }: Request): (typeof distances)[number] | undefined {
  if (distance_type === undefined) return undefined;
  const found = distances.find((each) => each === distance_type.toLowerCase());
  if (found === undefined)
    throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
  return found;
}

const tokenizers = /^(simple|whitespace|raw|ngram|icu|icu\/split|(jieba|lindera)(\/\w[\w.-]*)+)$/;

/** The library reads the model of a language from a folder of the name that it is given. */
function tokenizerOf({ base_tokenizer: name }: Request) {
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

/** The library ends the process for a language that it does not know. */
function languageOf({ language }: Request): string | undefined {
  if (language === undefined) return undefined;
  const found = languages.find((each) => each.toLowerCase() === language.toLowerCase());
  if (found === undefined) throw new CatalogError("InvalidInput", `language: must be one of ${languages.join(", ")}`);
  return found;
}

type Defined<Options> = { [Name in keyof Options]?: Exclude<Options[Name], undefined> };

/** Leaves out what is undefined. */
function defined<Options extends object>(options: Options): Defined<Options> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<Options>;
}
