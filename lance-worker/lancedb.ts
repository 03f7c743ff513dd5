import type { Connection, Query, Session, Table, VectorQuery } from "@lancedb/lancedb";
import { CatalogError } from "@tiltyard/protocol";

export type Lancedb = typeof import("@lancedb/lancedb");
export type DatasetQuery = Query | VectorQuery;

/** The maximum number of returned or skipped rows that the library accepts; it drops higher bits. */
export const rowsMax = 2 ** 32 - 1;

/** The maximum sizes of the library's caches, which all calls share, and their share of the process's memory. */
const caches = { index: { bytesMax: 128 * 1024 ** 2, part: 8 }, metadata: { bytesMax: 64 * 1024 ** 2, part: 16 } };

/**
 * The inner part of the library, whose rows are bytes of Arrow IPC files. The outer part decodes rows in JavaScript,
 * which does not support every type. The library exports these types only through its constructors.
 */
export type RawTable = ConstructorParameters<Lancedb["Query"]>[0];
export type RawMerge = ReturnType<RawTable["mergeInsert"]>;
export type RawQuery = Pick<ReturnType<RawTable["query"]>, "outputSchema" | "execute">;
interface RawConnection {
  createTable(
    name: string,
    file: Buffer,
    mode: "overwrite",
    namespace: readonly string[],
    storageOptions: Readonly<Record<string, string>>,
  ): Promise<RawTable>;
}

/** The loaded library with its caches. */
export interface Library {
  readonly lancedb: Lancedb;
  readonly session: Session;
}

/** Loads the library. @throws CatalogError Unsupported if it is not installed. */
export async function loadLibrary(memoryBytes: number): Promise<Library> {
  let lancedb: Lancedb;
  try {
    lancedb = await import("@lancedb/lancedb");
  } catch (cause) {
    throw new CatalogError(
      "Unsupported",
      "this catalog cannot open datasets, because the package @lancedb/lancedb is not installed with it " +
        "or not built for its platform: npm install --include=optional. Until then, open the table at its location",
      { cause },
    );
  }
  const bytesOf = ({ bytesMax, part }: { readonly bytesMax: number; readonly part: number }) =>
    BigInt(Math.min(bytesMax, Math.floor(memoryBytes / part)));
  return { lancedb, session: new lancedb.Session(bytesOf(caches.index), bytesOf(caches.metadata)) };
}

/**
 * Returns the inner part of a table. @throws Error if the internals of the library differ from those of the pinned
 * version.
 */
export function rawTableOf(table: Table): RawTable {
  return innerOf<RawTable>(table, [
    "schema",
    "add",
    "addColumnsWithSchema",
    "alterColumns",
    "mergeInsert",
    "getLsmWriteSpec",
  ]);
}

export function rawConnectionOf(connection: Connection): RawConnection {
  return innerOf<RawConnection>(connection, ["createTable"]);
}

export async function rawQueryOf(query: DatasetQuery): Promise<RawQuery> {
  const outer: object = query;
  return innerOf<RawQuery>({ inner: await ("inner" in outer ? outer.inner : undefined) }, ["outputSchema", "execute"]);
}

function innerOf<Raw>(of: object, methods: readonly (keyof Raw & string)[]): Raw {
  const inner: unknown = "inner" in of ? of.inner : undefined;
  const isRaw = (value: unknown): value is Raw =>
    typeof value === "object" && value !== null && methods.every((name) => name in value);
  if (!isRaw(inner))
    throw new Error("the internals of this version of @lancedb/lancedb are not those of the pinned one");
  return inner;
}
