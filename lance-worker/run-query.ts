import { CatalogError } from "@tiltyard/protocol";
import { type ArrowField, readFields, withZones } from "./arrow/arrow-field.ts";
import { ArrowFileWriter, type ArrowMessage, dictionaryIn, messageKinds, messagesOf } from "./arrow/arrow-file.ts";
import { arrowZone, type Kind } from "./arrow/arrow-type.ts";
import { plainTypes } from "./arrow/sql-type.ts";
import { quotedPath } from "./field-path.ts";
import { type RawQuery, rawQueryOf } from "./lancedb.ts";
import type { OpenTable } from "./open-table.ts";
import { buildQuery } from "./query.ts";
import { literal, quotedName } from "./sql-text.ts";
import type { RowsQuery } from "./wire.ts";

/** The maximum number of rows that the library returns at once, and the bytes that they should have at most. */
const batch = { rowsMax: 1024, bytes: 8 * 1024 ** 2 };
/** The minimum size of a piece. A shorter piece waits for the next one, so that most responses are a single piece. */
const sentBytesMin = 64 * 1024;

/** Runs a query and returns its rows as one Arrow IPC file, in pieces as they are read. */
export async function* runQuery(dataset: OpenTable, request: RowsQuery): AsyncGenerator<Uint8Array, undefined> {
  const query = await withoutDictionaries(dataset, request);
  const rows = await query.execute(await batchRowsOf(dataset, query));
  let file = await rows.next();
  // Without rows, the library plans the query once more for the schema.
  const [schema] = messagesOf(file ?? (await query.outputSchema()));
  if (schema === undefined) throw new Error("a file begins with its schema");
  const writer = new ArrowFileWriter(withZones(schema, arrowZone));
  const dictionaries = new Map<number, Buffer>();
  let pieces = writer.begin();
  while (file !== null) {
    for (const message of messagesOf(file).slice(1))
      if (isNew(message, dictionaries)) pieces.push(...writer.add(message));
    if (lengthOf(pieces) >= sentBytesMin) {
      yield* pieces;
      pieces = [];
    }
    file = await rows.next();
  }
  yield Buffer.concat([...pieces, ...writer.end()]);
}

/**
 * Returns the number of rows that the library returns at once. It holds them in memory several times, so those with long
 * values, such as images, are fewer. The length of a row is estimated by that of all files.
 */
async function batchRowsOf(dataset: OpenTable, query: RawQuery): Promise<number> {
  const { numRows, totalBytes } = await dataset.stats();
  if (totalBytes * batch.rowsMax <= batch.bytes * numRows) return batch.rowsMax;
  const { fields } = readFields(await query.outputSchema());
  return fields.some(hasAnyLength) ? Math.max(1, Math.floor((batch.bytes * numRows) / totalBytes)) : batch.rowsMax;
}

/** Reports whether the values of a field differ in their length. */
function hasAnyLength({ type, children }: ArrowField): boolean {
  return kindsOfAnyLength.includes(type.kind) || children.some(hasAnyLength);
}

const kindsOfAnyLength: readonly Kind[] = [
  ...(["utf8", "large_utf8", "utf8_view", "binary", "large_binary", "binary_view"] as const),
  ...(["list", "large_list", "list_view", "large_list_view", "map"] as const),
];

function lengthOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/**
 * Returns a query that replaces dictionaries by plain values. An Arrow file has one dictionary per column, while each
 * fragment of a table may have a separate one.
 */
async function withoutDictionaries(dataset: OpenTable, request: RowsQuery): Promise<RawQuery> {
  const build = () => buildQuery(dataset.lancedb, dataset.table, request);
  const query = await rawQueryOf(await build());
  const stored = plainTypes(await dataset.schema());
  // Planning a query for its schema costs time.
  if (!hasTypes(stored)) return query;
  const answered = plainTypes(await query.outputSchema());
  if (!hasTypes(answered)) return query;
  const selection = selectedColumns(request, stored).map(([name, expression]) => {
    const type = answered.get(name);
    return [name, type === undefined ? expression : `arrow_cast(${expression}, ${literal(type)})`] as const;
  });
  return rawQueryOf((await build()).select(new Map(selection)));
}

function hasTypes(columns: ReadonlyMap<string, string | undefined>): boolean {
  return [...columns.values()].some((type) => type !== undefined);
}

/**
 * Returns the columns of a response by their names, each with its expression. The library adds others itself, such as
 * `_distance`.
 */
function selectedColumns(
  { columns: { column_names: names = [], column_aliases: aliases } }: RowsQuery,
  stored: ReadonlyMap<string, unknown>,
): (readonly [name: string, expression: string])[] {
  if (aliases !== undefined) return Object.entries(aliases);
  if (names.length === 0) return [...stored.keys()].map((name) => [name, quotedName(name)]);
  return names.map((name) => [name, stored.has(name) ? quotedName(name) : quotedPath(name)]);
}

/**
 * Reports whether a message belongs in the file. Each batch repeats its dictionaries, but a file contains each of them
 * once.
 */
function isNew({ kind, table, bytes }: ArrowMessage, dictionaries: Map<number, Buffer>): boolean {
  if (kind !== messageKinds.dictionary) return true;
  const { id } = dictionaryIn(table);
  const present = dictionaries.get(id);
  if (present === undefined) {
    // The copy avoids that these bytes keep the buffer of a whole batch alive.
    dictionaries.set(id, Buffer.from(bytes));
    return true;
  }
  if (present.equals(bytes)) return false;
  throw new CatalogError(
    "Unsupported",
    "the rows have dictionaries that differ from batch to batch, which an Arrow file cannot contain. Request fewer columns",
  );
}
