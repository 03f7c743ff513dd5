import { RecordBatchStreamWriter, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import type { TestCatalog } from "./catalog.ts";
import { uniqueName } from "./catalog.ts";
import type { Service } from "./committer.ts";

export interface Film {
  readonly id: number;
  readonly title: string;
}

/** Films as an Arrow table with plain strings, as all clients except JavaScript's write them. */
export function filmTable(rows: readonly Film[]): Table {
  return new Table({
    id: vectorFromArray(rows.map(({ id }) => id)),
    title: vectorFromArray(
      rows.map(({ title }) => title),
      new Utf8(),
    ),
  });
}

/** Returns an Arrow stream with one batch for each table. */
export function arrowStream(films: readonly Film[] | readonly Table[]): Uint8Array {
  if (films.length === 0) return tableToIPC(filmTable([{ id: 0, title: "" }]).slice(0, 0), "stream");
  const tables = films.map((each) => (each instanceof Table ? each : filmTable([each])));
  return RecordBatchStreamWriter.writeAll(tables.flatMap((table) => table.batches)).toUint8Array(true);
}

/** Sends rows to an operation, such as `films/insert`. */
export function postRows({ url, key }: Service, operation: string, films: readonly Film[]): Promise<Response> {
  return fetch(`${url()}/v1/table/${operation}`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/vnd.apache.arrow.stream" },
    body: new Uint8Array(arrowStream(films)),
  });
}

/** Returns the rows of an Arrow file. */
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

/** Creates a table with these rows in a new namespace. @returns Its identifier. */
export async function createFilms(
  catalog: TestCatalog,
  rows: readonly Film[] | readonly Table[] = films,
): Promise<string[]> {
  const namespace = uniqueName("ns");
  await catalog.call("createNamespace", { id: [namespace] });
  const id = [namespace, "films"];
  const { body } = await catalog.call("createTable", { id }, { body: arrowStream(rows) });
  if (body.version !== 1) throw new Error(`the table has version ${body.version}`);
  return id;
}
