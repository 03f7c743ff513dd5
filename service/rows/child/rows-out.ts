import type { Table } from "@lancedb/lancedb";
import { CatalogError } from "@tiltyard/protocol";
import { ArrowFileWriter, type ArrowMessage, dictionaryIn, messageKinds, messagesOf } from "../arrow/arrow-file.ts";
import { plainColumns } from "../arrow/arrow-schema.ts";
import { type DatasetQuery, type RawQuery, rawQueryOf } from "./lancedb.ts";
import type { OpenTable } from "./open-table.ts";

/** The most rows that the library returns at once. */
const batchRowsMax = 1024;
/** A shorter piece waits for the next one, so that most answers are one piece. */
const sentBytesMin = 64 * 1024;

/**
 * Runs a query and returns its rows as one Arrow IPC file, a piece at a time as it is read.
 *
 * @param dataset Closed at the end.
 */
export async function* readRows(
  dataset: OpenTable,
  build: (table: Table) => Promise<DatasetQuery>,
): AsyncGenerator<Uint8Array, undefined> {
  await using _ = dataset;
  const hasDictionaries = [...plainColumns(await dataset.schema()).values()].some((plain) => plain !== undefined);
  const { table } = dataset;
  const query = hasDictionaries ? await withoutDictionaries(() => build(table)) : await rawQueryOf(await build(table));
  const rows = await query.execute(batchRowsMax);
  let file = await rows.next();
  // The library plans the query once more for the schema of no rows.
  const [schema] = messagesOf(file ?? (await query.outputSchema()));
  if (schema === undefined) throw new Error("a file begins with its schema");
  const writer = new ArrowFileWriter(schema);
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

function lengthOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Columns that the library adds to the requested ones. */
const added = ["_rowid", "_distance", "_score", "_relevance_score"];

/**
 * Replaces dictionaries by plain values: an Arrow file has one dictionary for a column, and each fragment of a table may
 * have its own.
 */
async function withoutDictionaries(build: () => Promise<DatasetQuery>): Promise<RawQuery> {
  const query = await rawQueryOf(await build());
  const columns = plainColumns(await query.outputSchema());
  if ([...columns.values()].every((plain) => plain === undefined)) return query;
  const asked = [...columns].filter(([name]) => !added.includes(name));
  return rawQueryOf(
    (await build()).select(new Map(asked.map(([name, plain]) => [name, plain ?? `\`${name.replaceAll("`", "``")}\``]))),
  );
}

/** Checks whether a message belongs in the file: each batch repeats its dictionaries, and a file has each of them once. */
function isNew({ kind, table, bytes }: ArrowMessage, dictionaries: Map<number, Buffer>): boolean {
  if (kind !== messageKinds.dictionary) return true;
  const { id } = dictionaryIn(table);
  const present = dictionaries.get(id);
  if (present === undefined) {
    // A copy, because these bytes would keep the buffer of a whole batch alive.
    dictionaries.set(id, Buffer.from(bytes));
    return true;
  }
  if (present.equals(bytes)) return false;
  throw new CatalogError(
    "Unsupported",
    "the rows have dictionaries that differ from batch to batch, for which an Arrow file has no place: ask for fewer columns",
  );
}
