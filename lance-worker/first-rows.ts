import type { Query, Table, VectorQuery } from "@lancedb/lancedb";
import { arrowTypeText, CatalogError, numbers, type ShownValue, shown } from "@tiltyard/protocol";
import { readSchema } from "./arrow/arrow-schema.ts";
import { rawQueryOf, rowsMax } from "./lancedb.ts";
import type { OpenTable } from "./open-table.ts";
import { readEach, type ShownColumn, shownColumn } from "./shown-column.ts";
import { quotedName } from "./sql-text.ts";
import type { FirstRows, FirstRowsRequest as Request } from "./wire.ts";

/**
 * Reads the first rows of a table as text and images for display. The library itself truncates long values and returns
 * one row at a time, which bounds the memory.
 */
export async function readFirstRows(dataset: OpenTable, request: Request): Promise<FirstRows> {
  const { fields } = readSchema(await dataset.schema());
  const named = request.columns?.flatMap((name) => fields.find((field) => field.name === name) ?? []);
  const chosen = (named ?? fields).slice(0, shown.columns);
  const all = chosen.map((field) => shownColumn(field, request.whole ? shown.whole : shown));
  const { columns, page } = await readShown(dataset, all, request);
  return {
    version: dataset.version,
    columns: chosen.map(({ name, type }, index) => ({
      name,
      type: arrowTypeText(type),
      is_shown: columns[index] !== undefined,
    })),
    columns_in_all: fields.length,
    ...page,
  };
}

type Columns = readonly (ShownColumn | undefined)[];

/**
 * Reads rows without the columns whose expressions the library cannot plan or evaluate. All columns are tried first,
 * because each plan for a table with 10,000 columns lasts for seconds.
 */
async function readShown(dataset: OpenTable, all: Columns, request: Request) {
  try {
    return { columns: all, page: await readRows(dataset, all, request) };
  } catch (error) {
    const columns = await evaluable(dataset, all, request);
    // The filter or the order fails, not a column.
    if (columns.every((column) => column === undefined)) throw error;
    return { columns, page: await readRows(dataset, columns, request) };
  }
}

/**
 * Returns the columns whose expressions the library can plan and evaluate, such as none of dictionaries of bytes. Halves
 * of the columns are read, because few fail.
 */
async function evaluable(dataset: OpenTable, columns: Columns, request: Request): Promise<Columns> {
  const present = columns.filter((column) => column !== undefined);
  const half = new Set(present.slice(0, Math.ceil(present.length / 2)));
  if (half.size === present.length) return columns.map(() => undefined);
  const tryTo = async (some: Columns): Promise<Columns> => {
    try {
      await readRows(dataset, some, request);
      return some;
    } catch {
      return evaluable(dataset, some, request);
    }
  };
  const first = await tryTo(columns.map((column) => (column && half.has(column) ? column : undefined)));
  const second = await tryTo(columns.map((column) => (column && half.has(column) ? undefined : column)));
  return columns.map((_, index) => first[index] ?? second[index]);
}

async function readRows(
  { table }: OpenTable,
  columns: Columns,
  request: Request,
): Promise<Pick<FirstRows, "rows" | "distances" | "next_offset">> {
  const { tableFromIPC } = await import("apache-arrow");
  const expressions = columns.flatMap((column) => column?.expressions ?? []);
  if (expressions.length === 0) return { rows: [] };
  const { limit, offset = 0, like } = request;
  const found = like === undefined ? selectedRows(table, request) : await similarRows(table, like, request);
  const selection = selectionOf(expressions);
  if (like !== undefined) selection.set("distance", "_distance");
  const page = found.select(selection).limit(limit).offset(Math.min(offset, rowsMax));
  const query = await rawQueryOf(page);
  const batches = await query.execute(1);
  const answer = new BoundedRows(request.bytesMax ?? shown.answerBytes);
  const distances: number[] = [];
  const answered = () => ({ rows: answer.withImages(), ...(like !== undefined && { distances }) });
  for (let file = await batches.next(); file !== null; file = await batches.next())
    for (const row of tableFromIPC(file)) {
      const { distance, ...values } = row.toJSON();
      if (!answer.add(readEach(columns, Object.values(values))))
        return { ...answered(), next_offset: offset + answer.count };
      distances.push(Number(distance));
    }
  return answered();
}

type Row = FirstRows["rows"][number];

/** The rows of a response of bounded size: their texts first, then as many images as fit. */
class BoundedRows {
  #bytesLeft: number;
  #imageBytesLeft: number;
  readonly #rows: Row[] = [];
  readonly #images: [of: ShownValue, image: NonNullable<ShownValue["image"]>][] = [];

  constructor(bytesMax: number) {
    this.#bytesLeft = bytesMax;
    this.#imageBytesLeft = bytesMax;
  }

  get count(): number {
    return this.#rows.length;
  }

  /** Adds the texts of a row, and retains its images. @returns False if the row does not fit; the first one always does. */
  add(values: readonly (ShownValue | null)[]): boolean {
    const texts = values.map((value) => (value === null ? null : textOf(value)));
    const size = sizeOf(texts);
    if (this.#rows.length > 0 && size > this.#bytesLeft) return false;
    this.#bytesLeft -= size;
    this.#rows.push(texts);
    for (const [index, value] of values.entries()) {
      const text = texts[index];
      if (value?.image === undefined || text == null || sizeOf(value.image) > this.#imageBytesLeft) continue;
      this.#imageBytesLeft -= sizeOf(value.image);
      this.#images.push([text, value.image]);
    }
    return true;
  }

  withImages(): Row[] {
    for (const [of, image] of this.#images) {
      // The name of the field and the comma.
      const size = sizeOf(image) + 10;
      if (size > this.#bytesLeft) continue;
      this.#bytesLeft -= size;
      of.image = image;
    }
    return this.#rows;
  }
}

/** Returns the query for the rows of a filter in the order of a column. */
function selectedRows(table: Table, { filter, sort, descending = false }: Request): Query {
  const query = table.query();
  if (sort !== undefined) query.orderBy({ columnName: sort, ascending: !descending, nullsFirst: false });
  return filter === undefined ? query : query.where(filter);
}

/**
 * Returns the query for rows by their distance to a vector in a row.
 *
 * @throws CatalogError InvalidInput if the row has no vector, or for a page after the rows that a search finds.
 */
async function similarRows(table: Table, column: string, request: Request): Promise<VectorQuery> {
  const { limit, offset = 0, like_row: number = 0, filter } = request;
  if (limit + offset > numbers.found)
    throw new CatalogError("InvalidInput", `offset: a vector search finds at most ${numbers.found} rows`);
  const example = selectedRows(table, request).select(new Map([["vector", quotedName(column)]]));
  const [row] = await example.limit(1).offset(Math.min(number, rowsMax)).toArray();
  const vector: unknown = row?.vector;
  const values =
    typeof vector === "object" && vector !== null && Symbol.iterator in vector
      ? [...(vector as Iterable<unknown>)]
      : [];
  if (values.length === 0 || !values.every((value) => typeof value === "number"))
    throw new CatalogError("InvalidInput", `like: row ${number} has no vector in the column ${column}`);
  const query = table
    .query()
    .nearestTo(values as number[])
    .column(column);
  return filter === undefined ? query : query.where(filter);
}

/** Returns a value without its image. A text that exceeds the whole response is cut. */
function textOf({ image, ...value }: ShownValue): ShownValue {
  if (sizeOf(value) <= shown.answerBytes) return value;
  // JSON represents a character by six bytes at most.
  const text = value.text.slice(0, Math.floor(shown.answerBytes / 6) - 100).toWellFormed();
  return { length: value.text.length, unit: "characters", ...value, text };
}

/** Returns the size of a value as JSON in bytes. */
function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

function selectionOf(expressions: readonly string[]): Map<string, string> {
  return new Map(expressions.map((expression, index) => [`c${index}`, expression]));
}
