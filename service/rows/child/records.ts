import type { Expression } from "../sql-text.ts";
import type { OpenTable } from "./open-table.ts";

interface Request {
  readonly filter: Expression | undefined;
  readonly limit: number;
}

/** Reads rows with all their values as JSON, for small tables such as Geneva's definitions. */
export async function readRecords(
  { table }: OpenTable,
  { filter, limit }: Request,
): Promise<Record<string, unknown>[]> {
  const query = table.query().limit(limit);
  const rows = await (filter === undefined ? query : query.where(filter)).toArray();
  return JSON.parse(JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? Number(value) : value)));
}
