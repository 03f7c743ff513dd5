import type { Config } from "./config.ts";
import { fixedParts, type OpenCatalog, openStorage } from "./open-catalog.ts";
import { WriterNeeded } from "./store/writer-needed.ts";

/**
 * Opens the catalog for a process that only reads, beside one that writes. A request that finds something to change, such
 * as a version that is not finished, or that opens a table, throws WriterNeeded.
 */
export async function openReadOnlyCatalog(config: Config): Promise<OpenCatalog> {
  if (config.database.kind !== "sqlite") throw new Error("over a database that is shared, all processes write");
  const { openSqliteReader } = await import("./store/sqlite-reader.ts");
  const store = openSqliteReader(config.database.file);
  return {
    store,
    storage: openStorage(config),
    ...fixedParts(config),
    finishing: {
      finish: async ({ record }) => (record.finished ? record : needWriter()),
      note: needWriter,
      finishTransaction: needWriter,
      findForgotten: needWriter,
      settled: async () => undefined,
    },
    rows: {
      read: needWriter,
      query: needWriter,
      change: needWriter,
      [Symbol.asyncDispose]: async () => undefined,
    },
    worker: { wake: needWriter },
    begin: () => undefined,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

function needWriter(): never {
  throw new WriterNeeded();
}
