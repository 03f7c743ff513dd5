import { CatalogError } from "@tiltyard/protocol";
import { type ArrowField, readFields, withZones } from "./arrow/arrow-field.ts";
import { ArrowFileWriter, type ArrowMessage, dictionaryIn, messageKinds, messagesOf } from "./arrow/arrow-file.ts";
import { arrowZone, type Kind } from "./arrow/arrow-type.ts";
import { plainColumns } from "./arrow/sql-type.ts";
import { type DatasetQuery, type RawQuery, rawQueryOf } from "./lancedb.ts";
import type { OpenTable } from "./open-table.ts";
import { quotedName } from "./sql-text.ts";

/** The maximum number of rows that the library returns at once, and the bytes that they should have at most. */
const batch = { rowsMax: 1024, bytes: 8 * 1024 ** 2 };
/** The minimum size of a piece. A shorter piece waits for the next one, so that most responses are a single piece. */
const sentBytesMin = 64 * 1024;

/** Runs a query and returns its rows as one Arrow IPC file, in pieces as they are read. */
export async function* runQuery(
  dataset: OpenTable,
  build: () => Promise<DatasetQuery>,
): AsyncGenerator<Uint8Array, undefined> {
  const stored = plainColumns(await dataset.schema());
  const hasDictionaries = [...stored.values()].some((plain) => plain !== undefined);
  const query = hasDictionaries ? await withoutDictionaries(build, stored) : await rawQueryOf(await build());
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

/** The columns that the library adds to the requested ones. A table may have columns with these names itself. */
const added = ["_rowid", "_distance", "_score", "_relevance_score"];

/**
 * Replaces dictionaries by plain values. An Arrow file has one dictionary per column, while each fragment of a table
 * may have a separate one.
 */
async function withoutDictionaries(
  build: () => Promise<DatasetQuery>,
  stored: ReturnType<typeof plainColumns>,
): Promise<RawQuery> {
  const query = await rawQueryOf(await build());
  const columns = plainColumns(await query.outputSchema());
  if ([...columns.values()].every((plain) => plain === undefined)) return query;
  const requested = [...columns].filter(([name]) => stored.has(name) || !added.includes(name));
  return rawQueryOf(
    (await build()).select(new Map(requested.map(([name, plain]) => [name, plain ?? quotedName(name)]))),
  );
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
