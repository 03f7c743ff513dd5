import { RecordBatchStreamWriter, type Table, tableFromIPC, tableFromJSON, tableToIPC } from "apache-arrow";
import type { TestCatalog } from "./catalog.ts";
import { uniqueName } from "./catalog.ts";

/** Rows as an Arrow stream of one batch. */
export function arrowStream(rows: Record<string, unknown>[] | Table): Uint8Array {
  return tableToIPC(Array.isArray(rows) ? tableFromJSON(rows) : rows, "stream");
}

/** Several tables of one schema as an Arrow stream with a batch for each. */
export function arrowStreamOf(tables: readonly Table[]): Uint8Array {
  return RecordBatchStreamWriter.writeAll(tables.flatMap((table) => table.batches)).toUint8Array(true);
}

/** The rows of an Arrow file. */
export async function readRows(file: ReadableStream<Uint8Array>): Promise<Record<string, unknown>[]> {
  return tableFromIPC(new Uint8Array(await new Response(file).arrayBuffer()))
    .toArray()
    .map((row) => ({ ...row }));
}

export const films = [
  { id: 1, title: "Stalker" },
  { id: 2, title: "Solaris" },
  { id: 3, title: "Mirror" },
];

/** A table with these rows, in a namespace of its own. @returns Its identifier. */
export async function createFilms(catalog: TestCatalog, rows: Record<string, unknown>[] = films): Promise<string[]> {
  const namespace = uniqueName("ns");
  await catalog.call("createNamespace", { id: [namespace] });
  const id = [namespace, "films"];
  const { body } = await catalog.call("createTable", { id }, { body: arrowStream(rows) });
  if (body.version !== 1) throw new Error(`the table has version ${body.version}`);
  return id;
}
