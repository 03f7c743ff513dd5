import type { QueryRequest } from "@tiltyard/lance-worker";
import { CatalogError, type FtsQuery, numbers, type RemoteFtsQuery, type RemoteQuery } from "@tiltyard/protocol";
import type { Handler } from "../handler.ts";
import { analyzeTableQueryPlan, explainTableQueryPlan, queryTable } from "../table-data.ts";

export const remoteQueryTable: Handler<"remoteQueryTable"> = (request, catalog, caller) =>
  queryTable({ ...request, ...toProtocol(request) }, catalog, caller);

export const remoteExplainTableQueryPlan: Handler<"remoteExplainTableQueryPlan"> = (request, catalog, caller) =>
  explainTableQueryPlan(
    { ...request, branch: undefined, query: { ...toProtocol(request.query), id: undefined } },
    catalog,
    caller,
  );

export const remoteAnalyzeTableQueryPlan: Handler<"remoteAnalyzeTableQueryPlan"> = (request, catalog, caller) =>
  analyzeTableQueryPlan({ ...request, ...toProtocol(request) }, catalog, caller);

/** The limit that replaces the client's value for "all rows", 2^63-1, which JavaScript cannot represent as a number. */
const allRows = 2 ** 31 - 1;

/** Converts a query of LanceDB's dialect to the protocol's. @throws CatalogError InvalidInput */
export function toProtocol(query: Omit<RemoteQuery, "id">) {
  const { columns, vector = [], full_text_query: text, order_by, ...same } = query;
  return {
    ...same,
    k: rowsOf(query),
    columns: columnsOf(columns),
    vector: {
      single_vector: vector.filter((each) => typeof each === "number"),
      multi_vector: vector.filter((each) => typeof each !== "number"),
    },
    full_text_query: text && textOf(text),
    ...(order_by !== undefined && {
      order_by: order_by.map(({ column_name, ascending = true, nulls_first = false }) => ({
        column_name,
        ascending,
        nulls_first,
      })),
    }),
  } satisfies QueryRequest;
}

function rowsOf({ k, offset = 0, vector = [], full_text_query, refine_factor = 1 }: Omit<RemoteQuery, "id">): number {
  if (Number.isSafeInteger(k)) return k;
  if (k < allRows) throw new CatalogError("InvalidInput", "k: must be an integer");
  const isSearch = vector.length > 0 || full_text_query !== undefined;
  return isSearch ? Math.max(0, Math.floor(numbers.found / Math.max(1, refine_factor)) - offset) : allRows;
}

function columnsOf(columns: RemoteQuery["columns"]): QueryRequest["columns"] {
  if (columns === undefined) return undefined;
  return Array.isArray(columns)
    ? { column_names: columns, column_aliases: undefined }
    : { column_names: undefined, column_aliases: columns };
}

function textOf({ query, columns }: NonNullable<RemoteQuery["full_text_query"]>): QueryRequest["full_text_query"] {
  if (typeof query === "string") return { string_query: { query, columns }, structured_query: undefined };
  return { string_query: undefined, structured_query: { query: toFtsQuery(query) } };
}

const plainMatch = { fuzziness: undefined, max_expansions: undefined, prefix_length: undefined };

function toFtsQuery({ match, phrase, boost, multi_match: multi, boolean }: RemoteFtsQuery): FtsQuery {
  return {
    match,
    phrase,
    boost: boost && {
      ...boost,
      positive: toFtsQuery(boost.positive),
      negative: toFtsQuery(boost.negative),
    },
    multi_match: multi && {
      match_queries: multi.columns.map((column, index) => ({
        ...plainMatch,
        terms: multi.query,
        column,
        boost: multi.boost?.[index],
        operator: multi.operator,
      })),
    },
    boolean: boolean && {
      should: boolean.should.map(toFtsQuery),
      must: boolean.must.map(toFtsQuery),
      must_not: boolean.must_not.map(toFtsQuery),
    },
  };
}
