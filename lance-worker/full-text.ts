import type { FullTextQuery, Table } from "@lancedb/lancedb";
import { CatalogError, type FtsQuery } from "@tiltyard/protocol";
import type { Lancedb } from "./lancedb.ts";

/** The maximum nesting of a full-text query. */
const depthMax = 32;

type MatchQuery = NonNullable<FtsQuery["match"]>;
type Term = Pick<MatchQuery, "column" | "terms">;

/**
 * Returns the library's query for a structured one. A term without a column is searched in all columns with a full-text
 * index, as in Lance itself.
 *
 * @throws CatalogError InvalidInput
 */
export async function fullTextQuery(lancedb: Lancedb, table: Table, query: FtsQuery): Promise<FullTextQuery> {
  const indexed = hasDefaults(query, depthMax) ? await indexedColumns(table) : [];
  const { MatchQuery, PhraseQuery, BoostQuery, BooleanQuery, MultiMatchQuery, Operator } = lancedb;
  const { Should, Must, MustNot } = lancedb.Occur;

  const toMatch = (match: MatchQuery, column: string) => {
    const { boost, fuzziness, max_expansions: maxExpansions, prefix_length: prefixLength, operator } = match;
    return new MatchQuery(match.terms, column, {
      ...(boost !== undefined && { boost }),
      ...(fuzziness !== undefined && { fuzziness }),
      ...(maxExpansions !== undefined && { maxExpansions }),
      ...(prefixLength !== undefined && { prefixLength }),
      ...(operator !== undefined && { operator: Operator[operator] }),
    });
  };
  const toMatches = (matches: readonly MatchQuery[]): FullTextQuery => {
    const all = matches.flatMap((match) => columnsOf(match, indexed).map((column) => ({ match, column })));
    const [first] = all;
    if (first !== undefined && all.length === 1) return toMatch(first.match, first.column);
    // The score of a row is that of its best column here, and the sum of all columns in a boolean query.
    const { terms, operator = "Or" } = first?.match ?? {};
    if (terms !== undefined && all.every(({ match }) => isPlain(match) && match.terms === terms))
      return new MultiMatchQuery(
        terms,
        all.map(({ column }) => column),
        { boosts: all.map(({ match }) => match.boost ?? 1), operator: Operator[operator] },
      );
    return new BooleanQuery(all.map(({ match, column }) => [Should, toMatch(match, column)]));
  };
  const convert = (each: FtsQuery): FullTextQuery => {
    const { match, phrase, boost, multi_match: multi, boolean } = each;
    if (match !== undefined) return toMatches([match]);
    if (multi !== undefined) return toMatches(multi.match_queries);
    if (phrase !== undefined)
      return new PhraseQuery(phrase.terms, onlyColumn(phrase, indexed), { slop: phrase.slop ?? 0 });
    if (boost !== undefined)
      return new BoostQuery(
        convert(boost.positive),
        convert(boost.negative),
        boost.negative_boost === undefined ? {} : { negativeBoost: boost.negative_boost },
      );
    return new BooleanQuery([
      ...(boolean?.should ?? []).map((inner): [typeof Should, FullTextQuery] => [Should, convert(inner)]),
      ...(boolean?.must ?? []).map((inner): [typeof Must, FullTextQuery] => [Must, convert(inner)]),
      ...(boolean?.must_not ?? []).map((inner): [typeof MustNot, FullTextQuery] => [MustNot, convert(inner)]),
    ]);
  };
  return convert(query);
}

/** Validates the structure of a query. @returns Whether one of its terms has no column. @throws CatalogError InvalidInput */
function hasDefaults(query: FtsQuery, depth: number): boolean {
  const { match, phrase, boost, multi_match: multi, boolean } = query;
  if (depth === 0)
    throw new CatalogError("InvalidInput", `full_text_query: must not nest deeper than ${depthMax} levels`);
  if ([match, phrase, boost, multi, boolean].filter((each) => each !== undefined).length !== 1)
    throw new CatalogError(
      "InvalidInput",
      "full_text_query: a query has exactly one of match, phrase, boost, multi_match, boolean",
    );
  const inner = boost === undefined ? Object.values(boolean ?? {}).flat() : [boost.positive, boost.negative];
  const terms: readonly (Term | undefined)[] = [match, phrase, ...(multi?.match_queries ?? [])];
  // Every part is validated, even after one without a column.
  const found = inner.map((each) => hasDefaults(each, depth - 1));
  return terms.some((term) => term !== undefined && term.column === undefined) || found.includes(true);
}

async function indexedColumns(table: Table): Promise<string[]> {
  const indices = await table.listIndices();
  return indices.filter(({ indexType }) => indexType === "FTS").flatMap(({ columns }) => columns);
}

function columnsOf({ column }: Term, indexed: readonly string[]): readonly string[] {
  if (column !== undefined) return [column];
  if (indexed.length > 0) return indexed;
  throw new CatalogError("InvalidInput", "full_text_query: no column of the table has a full-text index");
}

function onlyColumn(term: Term, indexed: readonly string[]): string {
  const [column, ...others] = columnsOf(term, indexed);
  if (column !== undefined && others.length === 0) return column;
  throw new CatalogError(
    "InvalidInput",
    `full_text_query: a phrase must name its column, because several columns have a full-text index: ${indexed.join(", ")}`,
  );
}

/** Reports whether a match has no option that a search in several columns does not support. */
function isPlain({ fuzziness = 0, prefix_length = 0 }: MatchQuery): boolean {
  return fuzziness === 0 && prefix_length === 0;
}
