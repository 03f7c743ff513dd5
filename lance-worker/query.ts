import type { Query, Table, VectorQuery } from "@lancedb/lancedb";
import { CatalogError, numbers } from "@tiltyard/protocol";
import { distanceOf } from "./create-index.ts";
import { fullTextQuery } from "./full-text.ts";
import { type DatasetQuery, type Lancedb, rowsMax } from "./lancedb.ts";
import type { RowsQuery } from "./wire.ts";

/** Returns the library's query for a request. @throws CatalogError InvalidInput, Unsupported */
export async function buildQuery(lancedb: Lancedb, table: Table, request: RowsQuery): Promise<DatasetQuery> {
  const { offset, filter, with_row_id: withRowId, fast_search: fastSearch } = request;
  const query = (await searchOf(lancedb, table, request)).limit(Math.min(request.k, rowsMax));
  if (filter) query.where(filter);
  if (offset !== undefined) query.offset(Math.min(offset, rowsMax));
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
  const { column_names: names, column_aliases: aliases } = request.columns;
  if (names !== undefined && aliases !== undefined)
    throw new CatalogError("InvalidInput", "columns: must have either column_names or column_aliases");
  if (aliases !== undefined) query.select(new Map(Object.entries(aliases)));
  else if (names !== undefined && names.length > 0) query.select(names);
  return query;
}

async function searchOf(lancedb: Lancedb, table: Table, request: RowsQuery): Promise<DatasetQuery> {
  const query = table.query();
  const { single_vector: single, multi_vector: multi = [] } = request.vector ?? {};
  const vectors = single === undefined || single.length === 0 ? multi : [single];
  if (single !== undefined && single.length > 0 && multi.length > 0)
    throw new CatalogError("InvalidInput", "vector: must have either single_vector or multi_vector");
  const { string_query: text, structured_query: structured } = request.full_text_query ?? {};
  if (text !== undefined && structured !== undefined)
    throw new CatalogError("InvalidInput", "full_text_query: must have either string_query or structured_query");
  if (text !== undefined) query.fullTextSearch(text.query, text.columns?.length ? { columns: [...text.columns] } : {});
  if (structured !== undefined) query.fullTextSearch(await fullTextQuery(lancedb, table, structured.query));
  const [first, ...others] = vectors;
  if (first === undefined) {
    const isText = text !== undefined || structured !== undefined;
    if (isText && request.filter !== undefined && request.prefilter === false)
      throw new CatalogError(
        "Unsupported",
        "prefilter: a full-text search without a vector cannot filter afterwards. Omit prefilter",
      );
    return query;
  }
  return others.reduce((search, vector) => search.addQueryVector([...vector]), vectorSearch(query, first, request));
}

function vectorSearch(query: Query, vector: readonly number[], request: RowsQuery): VectorQuery {
  const { k, offset = 0, refine_factor: refineFactor = 1 } = request;
  // The library reserves memory for all possible results of a search before it searches for the first.
  if ((k + offset) * Math.max(1, refineFactor) > numbers.found)
    throw new CatalogError(
      "InvalidInput",
      `k: a vector search finds at most ${numbers.found} rows: (k + offset) * refine_factor must not exceed this number`,
    );
  const search = query.nearestTo([...vector]);
  if (request.vector_column !== undefined) search.column(request.vector_column);
  // The library accepts one more distance than its types list.
  if (request.distance_type !== undefined) search.distanceType(distanceOf(request.distance_type) as "l2");
  if (request.lower_bound !== undefined || request.upper_bound !== undefined)
    search.distanceRange(request.lower_bound, request.upper_bound);
  setProbes(search, request);
  if (request.ef !== undefined) search.ef(request.ef);
  if (request.refine_factor !== undefined) search.refineFactor(request.refine_factor);
  if (request.bypass_vector_index) search.bypassVectorIndex();
  if (request.prefilter === false) search.postfilter();
  return search;
}

/** The number of partitions that the library searches by default. */
const probesDefault = 20;

/** Sets the number of searched partitions. @throws CatalogError InvalidInput if the minimum exceeds the maximum. */
function setProbes(search: VectorQuery, { nprobes = 0, minimum_nprobes: minimum, maximum_nprobes }: RowsQuery): void {
  if (minimum === undefined && maximum_nprobes === undefined) {
    if (nprobes > 0) search.nprobes(nprobes);
    return;
  }
  // In LanceDB's dialect, 0 means unlimited.
  const maximum = maximum_nprobes === 0 ? undefined : maximum_nprobes;
  const least = minimum ?? Math.min(probesDefault, maximum ?? probesDefault);
  if (least === 0 || (maximum !== undefined && least > maximum))
    throw new CatalogError("InvalidInput", "minimum_nprobes: must be from 1 to maximum_nprobes");
  // The library compares each bound with the current value of the other one.
  search.maximumNprobes(0);
  search.minimumNprobes(least);
  if (maximum !== undefined) search.maximumNprobes(maximum);
}
