import type { QueryTableRequest } from "@tiltyard/protocol";
import { type Expression, toExpression } from "./sql-text.ts";

/** The query of the protocol with the options that only LanceDB's dialect has. */
export interface QueryRequest extends Omit<QueryTableRequest, "id"> {
  readonly order_by?:
    | readonly { readonly column_name: string; readonly ascending: boolean; readonly nulls_first: boolean }[]
    | undefined;
}

/** A query for the child. */
export interface RowsQuery extends Omit<QueryRequest, "filter" | "columns"> {
  readonly filter: Expression | undefined;
  readonly columns: Pick<NonNullable<QueryRequest["columns"]>, "column_names"> & {
    readonly column_aliases: Readonly<Record<string, Expression>> | undefined;
  };
}

/** Converts the expressions of a query. */
export function toRowsQuery({ filter, columns, ...same }: QueryRequest): RowsQuery {
  const { column_names, column_aliases: aliases } = columns ?? {};
  const converted = Object.entries(aliases ?? {}).map(([name, sql]) => [name, toExpression(sql)] as const);
  const column_aliases = aliases && Object.fromEntries(converted);
  return { ...same, filter: toExpression(filter), columns: { column_names, column_aliases } };
}
