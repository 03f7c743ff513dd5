import { type managementContracts, type ResponseOf, type ShownValue, shown } from "@tiltyard/protocol";
import { readSchema } from "../arrow/arrow-schema.ts";
import { rawQueryOf, rowsMax } from "./lancedb.ts";
import type { OpenTable } from "./open-table.ts";
import { readEach, type ShownColumn, shownColumn } from "./shown-column.ts";

interface Request {
  readonly limit: number;
  /** The number of rows that are skipped. */
  readonly offset?: number | undefined;
  /** The condition for rows; all rows when absent. */
  readonly filter?: string | undefined;
  /** The name of the column that orders the rows. */
  readonly sort?: string | undefined;
  readonly descending?: boolean | undefined;
  /** The names of the columns; the first ones when absent. */
  readonly columns?: readonly string[] | undefined;
  /** Reads values up to higher limits. */
  readonly whole?: boolean | undefined;
}

type FirstRows = ResponseOf<typeof managementContracts.listTableRows>;

/**
 * Reads the first rows of a table as text and images for display. The library itself truncates long values and returns
 * one row at a time, which bounds the memory.
 */
export async function readFirstRows(dataset: OpenTable, request: Request): Promise<FirstRows> {
  const { fields } = readSchema(await dataset.schema());
  const named = request.columns?.flatMap((name) => fields.find((field) => field.name === name) ?? []);
  const chosen = (named ?? fields).slice(0, shown.columns);
  const columns = await Promise.all(
    chosen.map(async (field) => {
      const column = shownColumn(field, request.whole ? shown.whole : shown);
      return column !== undefined && (await isPlanned(dataset, column)) ? column : undefined;
    }),
  );
  return {
    version: dataset.version,
    columns: chosen.map(({ name }, index) => ({ name, is_shown: columns[index] !== undefined })),
    columns_in_all: fields.length,
    rows: await readRows(dataset, columns, request),
  };
}

/** Reports whether the library can plan the expressions of a column, without reading any rows. */
async function isPlanned({ table }: OpenTable, column: ShownColumn): Promise<boolean> {
  try {
    const query = await rawQueryOf(table.query().select(selectionOf(column.expressions)));
    await query.outputSchema();
    return true;
  } catch {
    return false;
  }
}

async function readRows(
  { table }: OpenTable,
  columns: readonly (ShownColumn | undefined)[],
  { limit, offset = 0, filter, sort, descending = false }: Request,
): Promise<FirstRows["rows"]> {
  const { tableFromIPC } = await import("apache-arrow");
  const expressions = columns.flatMap((column) => column?.expressions ?? []);
  if (expressions.length === 0) return [];
  const selected = table.query().select(selectionOf(expressions)).limit(limit).offset(Math.min(offset, rowsMax));
  if (sort !== undefined) selected.orderBy({ columnName: sort, ascending: !descending, nullsFirst: false });
  const query = await rawQueryOf(filter === undefined ? selected : selected.where(filter));
  const batches = await query.execute(1);
  const rows: FirstRows["rows"] = [];
  let bytesLeft: number = shown.answerBytes;
  for (let file = await batches.next(); file !== null && bytesLeft > 0; file = await batches.next())
    for (const row of tableFromIPC(file)) {
      const values = readEach(columns, Object.values(row.toJSON()));
      rows.push(
        values.map((value) => {
          const fitting = fitted(value, bytesLeft);
          bytesLeft -= sizeOf(fitting);
          return fitting;
        }),
      );
    }
  return rows;
}

/** Removes an image that exceeds the remaining size. */
function fitted(value: ShownValue | null, bytesLeft: number): ShownValue | null {
  if (value?.image === undefined || value.image.base64.length <= bytesLeft) return value;
  const { image, ...rest } = value;
  return rest;
}

function sizeOf(value: ShownValue | null): number {
  return Buffer.byteLength(value?.text ?? "") + (value?.image?.base64.length ?? 0);
}

function selectionOf(expressions: readonly string[]): Map<string, string> {
  return new Map(expressions.map((expression, index) => [`c${index}`, expression]));
}
