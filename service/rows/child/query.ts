import type { FullTextQuery, Query, Table, VectorQuery } from "@lancedb/lancedb";
import { CatalogError, type FtsQuery, numbers, type QueryTableRequest } from "@tiltyard/protocol";
import type { DatasetQuery, Lancedb } from "./lancedb.ts";

/** How deep a full-text query may nest. */
const depthMax = 32;

/** The protocol's query, with the options that only LanceDB's own dialect has. */
export interface RowsQuery extends Omit<QueryTableRequest, "id"> {
  readonly order_by?:
    | readonly { readonly column_name: string; readonly ascending: boolean; readonly nulls_first: boolean }[]
    | undefined;
}

/** Returns the library's query for a request. @throws CatalogError InvalidInput */
export function buildQuery(lancedb: Lancedb, table: Table, request: RowsQuery): DatasetQuery {
  const { offset, filter, with_row_id: withRowId, fast_search: fastSearch } = request;
  const query = withSearch(lancedb, table.query(), request).limit(request.k);
  if (filter !== undefined && filter !== "") query.where(filter);
  if (offset !== undefined) query.offset(offset);
  if (withRowId) query.withRowId();
  if (fastSearch) query.fastSearch();
  if (request.order_by !== undefined && request.order_by.length > 0)
    query.orderBy(
      request.order_by.map(({ column_name: columnName, ascending, nulls_first: nullsFirst }) => ({
        columnName,
        ascending,
        nullsFirst,
      })),
    );
  const { column_names: names, column_aliases: aliases } = request.columns ?? {};
  if (names !== undefined && aliases !== undefined)
    throw new CatalogError("InvalidInput", "columns: takes either column_names or column_aliases");
  if (aliases !== undefined) query.select(new Map(Object.entries(aliases)));
  else if (names !== undefined && names.length > 0) query.select(names);
  return query;
}

function withSearch(lancedb: Lancedb, query: Query, request: RowsQuery): DatasetQuery {
  const { single_vector: single, multi_vector: multi = [] } = request.vector ?? {};
  const vectors = single === undefined || single.length === 0 ? multi : [single];
  if (single !== undefined && single.length > 0 && multi.length > 0)
    throw new CatalogError("InvalidInput", "vector: takes either single_vector or multi_vector");
  const { string_query: text, structured_query: structured } = request.full_text_query ?? {};
  if (text !== undefined && structured !== undefined)
    throw new CatalogError("InvalidInput", "full_text_query: takes either string_query or structured_query");
  if (text !== undefined) query.fullTextSearch(text.query, text.columns?.length ? { columns: [...text.columns] } : {});
  if (structured !== undefined) query.fullTextSearch(toLancedb(lancedb, structured.query, depthMax));
  const [first, ...others] = vectors;
  if (first === undefined) return query;
  return others.reduce((search, vector) => search.addQueryVector([...vector]), vectorSearch(query, first, request));
}

function vectorSearch(query: Query, vector: readonly number[], request: RowsQuery): VectorQuery {
  const { k, offset = 0, refine_factor: refineFactor = 1 } = request;
  // The library reserves memory for all rows that a search may find before it looks for the first.
  if ((k + offset) * Math.max(1, refineFactor) > numbers.found)
    throw new CatalogError(
      "InvalidInput",
      `k: a vector search finds ${numbers.found} rows at most, k and offset together, times refine_factor`,
    );
  const search = query.nearestTo([...vector]);
  if (request.vector_column !== undefined) search.column(request.vector_column);
  if (request.distance_type !== undefined) search.distanceType(distanceOf(request.distance_type));
  if (request.lower_bound !== undefined || request.upper_bound !== undefined)
    search.distanceRange(request.lower_bound, request.upper_bound);
  setProbes(search, request);
  if (request.ef !== undefined) search.ef(request.ef);
  if (request.refine_factor !== undefined) search.refineFactor(request.refine_factor);
  if (request.bypass_vector_index) search.bypassVectorIndex();
  if (request.prefilter === false) search.postfilter();
  return search;
}

/** The partitions that the library searches by default. */
const probesDefault = 20;

/** @throws CatalogError InvalidInput for a minimum above the maximum. */
function setProbes(search: VectorQuery, { nprobes = 0, minimum_nprobes: minimum, maximum_nprobes }: RowsQuery): void {
  if (minimum === undefined && maximum_nprobes === undefined) {
    if (nprobes > 0) search.nprobes(nprobes);
    return;
  }
  // LanceDB's dialect has 0 for no bound.
  const maximum = maximum_nprobes === 0 ? undefined : maximum_nprobes;
  const least = minimum ?? Math.min(probesDefault, maximum ?? probesDefault);
  if (least === 0 || (maximum !== undefined && least > maximum))
    throw new CatalogError("InvalidInput", "minimum_nprobes: must be from 1 to maximum_nprobes");
  // The library compares each bound with the other one as it is set.
  search.maximumNprobes(0);
  search.minimumNprobes(least);
  if (maximum !== undefined) search.maximumNprobes(maximum);
}

const distances = ["l2", "cosine", "dot", "hamming"] as const;

function distanceOf(name: string): Exclude<(typeof distances)[number], "hamming"> {
  const found = distances.find((each) => each === name.toLowerCase());
  // The library accepts one more than its types list.
  if (found !== undefined) return found as "l2";
  throw new CatalogError("InvalidInput", `distance_type: must be one of ${distances.join(", ")}`);
}

function toLancedb(lancedb: Lancedb, query: FtsQuery, depth: number): FullTextQuery {
  const { match, phrase, boost, multi_match: multi, boolean } = query;
  if (depth === 0) throw new CatalogError("InvalidInput", `full_text_query: nests deeper than ${depthMax}`);
  if ([match, phrase, boost, multi, boolean].filter((each) => each !== undefined).length !== 1)
    throw new CatalogError(
      "InvalidInput",
      "full_text_query: a query has exactly one of match, phrase, boost, multi_match, boolean",
    );
  const inner = (each: FtsQuery) => toLancedb(lancedb, each, depth - 1);
  if (match !== undefined) return toMatch(lancedb, match);
  if (phrase !== undefined) return new lancedb.PhraseQuery(phrase.terms, columnOf(phrase), { slop: phrase.slop ?? 0 });
  if (boost !== undefined)
    return new lancedb.BoostQuery(
      inner(boost.positive),
      inner(boost.negative),
      boost.negative_boost === undefined ? {} : { negativeBoost: boost.negative_boost },
    );
  const { Should, Must, MustNot } = lancedb.Occur;
  // One text in several columns is the same as several matches of which any may be found.
  if (multi !== undefined)
    return new lancedb.BooleanQuery(multi.match_queries.map((each) => [Should, toMatch(lancedb, each)]));
  return new lancedb.BooleanQuery([
    ...(boolean?.should ?? []).map((each): [typeof Should, FullTextQuery] => [Should, inner(each)]),
    ...(boolean?.must ?? []).map((each): [typeof Must, FullTextQuery] => [Must, inner(each)]),
    ...(boolean?.must_not ?? []).map((each): [typeof MustNot, FullTextQuery] => [MustNot, inner(each)]),
  ]);
}

function toMatch(lancedb: Lancedb, match: NonNullable<FtsQuery["match"]>): FullTextQuery {
  const { boost, fuzziness, max_expansions: maxExpansions, prefix_length: prefixLength, operator } = match;
  return new lancedb.MatchQuery(match.terms, columnOf(match), {
    ...(boost !== undefined && { boost }),
    ...(fuzziness !== undefined && { fuzziness }),
    ...(maxExpansions !== undefined && { maxExpansions }),
    ...(prefixLength !== undefined && { prefixLength }),
    ...(operator !== undefined && { operator: lancedb.Operator[operator] }),
  });
}

function columnOf({ column }: { readonly column?: string | undefined }): string {
  if (column !== undefined) return column;
  throw new CatalogError("InvalidInput", "full_text_query: a structured query names its column");
}
