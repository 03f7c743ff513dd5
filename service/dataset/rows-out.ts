import type { Table } from "@lancedb/lancedb";
import { CatalogError } from "@tiltyard/protocol";
import { ArrowFileWriter, type ArrowMessage, dictionaryIn, messageKinds, messagesOf } from "./arrow-file.ts";
import { plainColumns } from "./arrow-schema.ts";
import type { OpenDataset } from "./datasets.ts";
import { type DatasetQuery, type RawQuery, rawQueryOf } from "./library.ts";

/** How many rows are asked of the library at once, at most. */
const batchRowsMax = 1024;
/** A shorter piece waits for the next one: most answers are sent as one piece. */
const sentBytesMin = 64 * 1024;

/**
 * Runs a query and answers its rows as one Arrow IPC file, a batch at a time as the reader
 * takes them. What fails before the first batch is thrown; later it breaks the stream off.
 *
 * @param dataset Closed at the end of the stream, however it ends.
 */
export async function streamRows(
  dataset: OpenDataset,
  query: (table: Table) => DatasetQuery,
): Promise<ReadableStream<Uint8Array>> {
  const pieces = readRows(dataset, query);
  const first = await pieces.next();
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        if (!first.done) controller.enqueue(first.value);
      },
      pull: async (controller) => {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: async () => {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

async function* readRows(
  dataset: OpenDataset,
  build: (table: Table) => DatasetQuery,
): AsyncGenerator<Uint8Array, undefined> {
  await using _ = dataset;
  const hasDictionaries = [...plainColumns(await dataset.schema()).values()].some((plain) => plain !== undefined);
  const { query, rows } = await dataset.run(async (table) => {
    const query = hasDictionaries ? await withoutDictionaries(() => build(table)) : await rawQueryOf(build(table));
    return { query, rows: await query.execute(batchRowsMax) };
  });
  const next = () => dataset.run(() => rows.next());
  let file = await next();
  // The library plans the query once more for this.
  const [schema] = messagesOf(file ?? (await dataset.run(() => query.outputSchema())));
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
    file = await next();
  }
  yield Buffer.concat([...pieces, ...writer.end()]);
}

function lengthOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** What the library adds to the columns that were asked for. */
const added = ["_rowid", "_distance", "_score", "_relevance_score"];

/**
 * An Arrow file has one dictionary for a column, and each fragment of a table may have its
 * own: columns that have one are answered as plain values.
 */
async function withoutDictionaries(build: () => DatasetQuery): Promise<RawQuery> {
  const query = await rawQueryOf(build());
  const columns = plainColumns(await query.outputSchema());
  if ([...columns.values()].every((plain) => plain === undefined)) return query;
  const asked = [...columns].filter(([name]) => !added.includes(name));
  return rawQueryOf(
    build().select(new Map(asked.map(([name, plain]) => [name, plain ?? `\`${name.replaceAll("`", "``")}\``]))),
  );
}

/** Each batch comes with the dictionaries that it needs; a file has each of them once. */
function isNew({ kind, table, bytes }: ArrowMessage, dictionaries: Map<number, Buffer>): boolean {
  if (kind !== messageKinds.dictionary) return true;
  const { id } = dictionaryIn(table);
  const present = dictionaries.get(id);
  if (present === undefined) {
    // The bytes are of a buffer that holds a whole batch, which need not stay for this.
    dictionaries.set(id, Buffer.from(bytes));
    return true;
  }
  if (present.equals(bytes)) return false;
  throw new CatalogError(
    "Unsupported",
    "the rows have dictionaries that differ from batch to batch, for which an Arrow file has no place: ask for fewer columns",
  );
}
