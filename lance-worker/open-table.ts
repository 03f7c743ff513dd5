import type { Connection, Table } from "@lancedb/lancedb";
import { mainBranch } from "@tiltyard/protocol";
import { type Lancedb, type Library, loadLibrary, type RawTable, rawConnectionOf, rawTableOf } from "./lancedb.ts";
import { type Lease, VersionCache } from "./version-cache.ts";
import type { ComputedColumn, TableAddress } from "./wire.ts";

/** Opens a table for one call. A version that remains open is shared between calls. */
export type OpenForCall = (address: TableAddress) => Promise<Lease<OpenTable>>;

/** The namespace and the name of the table in the library's requests. Each token has only one table. */
const name = { namespace: ["view"], table: "table" };

export function createOpener(memoryBytes: number): OpenForCall {
  let library: Promise<Library> | undefined;
  const kept = new VersionCache<OpenTable>();
  return async (address) => {
    const loading = library ?? loadLibrary(memoryBytes);
    library = loading;
    const open = async () => OpenTable.open(await loading, address);
    if (address.cachedManifestBytes !== undefined) return kept.lease(address.token, address.cachedManifestBytes, open);
    const opened = await open();
    return { opened, [Symbol.dispose]: () => opened[Symbol.dispose]() };
  };
}

/** An open table with its connection of the library. */
export class OpenTable implements Disposable {
  readonly lancedb: Lancedb;
  readonly #address: TableAddress;
  readonly #connection: Connection;
  #table: Table | undefined;
  #created: RawTable | undefined;
  #schema: Promise<Buffer> | undefined;
  #stats: ReturnType<Table["stats"]> | undefined;

  private constructor(lancedb: Lancedb, connection: Connection, address: TableAddress) {
    this.lancedb = lancedb;
    this.#connection = connection;
    this.#address = address;
  }

  static async open({ lancedb, session }: Library, address: TableAddress): Promise<OpenTable> {
    const connection = await lancedb.connectNamespace(
      "rest",
      { uri: address.uri, headers: { authorization: `Bearer ${address.token}` } },
      { session, storageOptions: { ...address.storageOptions } },
    );
    const opened = new OpenTable(lancedb, connection, address);
    try {
      if (!opened.isEmpty) await opened.#openTable();
      return opened;
    } catch (error) {
      opened[Symbol.dispose]();
      throw error;
    }
  }

  async #openTable(): Promise<void> {
    const { branch, version, cachedManifestBytes } = this.#address;
    this.#table = await this.#connection.openTable(name.table, name.namespace);
    if (branch === mainBranch) return;
    const branches = await this.#table.branches();
    // A change begins with the latest version of the branch, like a change of main.
    this.#table = await branches.checkout(branch, cachedManifestBytes === undefined ? undefined : version);
  }

  get isEmpty(): boolean {
    return this.#address.version === undefined;
  }

  /** The columns for which written rows must not contain values. */
  get computed(): readonly ComputedColumn[] {
    return this.#address.computed ?? [];
  }

  /** The version of the format of the data files that a change writes; empty for the default of the library. */
  get fileVersion(): string {
    return this.#address.fileVersion ?? "";
  }

  /** The opened version. */
  get version(): number {
    return this.#address.version ?? 0;
  }

  get table(): Table {
    if (this.#table === undefined) throw new Error("the table has no version yet");
    return this.#table;
  }

  /** The part of the table that accepts and returns bytes. */
  get raw(): RawTable {
    return this.#created ?? rawTableOf(this.table);
  }

  /** Returns the columns of the opened version as an IPC file without rows. */
  schema(): Promise<Buffer> {
    this.#schema ??= rawTableOf(this.table).schema();
    return this.#schema;
  }

  /** Returns the statistics of the opened version. Those of 5,000 fragments need as much time as a search. */
  stats(): ReturnType<Table["stats"]> {
    this.#stats ??= this.table.stats();
    return this.#stats;
  }

  /** Creates the first version of a table with the rows of an Arrow IPC file. @returns Its number. */
  async create(file: Buffer): Promise<number> {
    const connection = rawConnectionOf(this.#connection);
    const options: Record<string, string> = this.#address.stableRowIds
      ? { new_table_enable_stable_row_ids: "true" }
      : {};
    // The mode "create" would refuse a folder with manifests of deleted versions. This one continues with the next number.
    // The table is not opened again, because that would place a held-back manifest.
    this.#created = await connection.createTable(name.table, file, "overwrite", name.namespace, options);
    return this.#created.version();
  }

  /** Requests that the catalog holds back the versions of this call until all of them exist. */
  async hold(): Promise<void> {
    const { uri, token } = this.#address;
    const response = await fetch(`${uri}/hold`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`the catalog responded to /hold with ${response.status}`);
  }

  [Symbol.dispose](): void {
    // The library holds its latest results until the event loop continues.
    setImmediate(() => {
      for (const each of [this.#table ?? this.#created, this.#connection]) tryToClose(each);
    });
  }
}

/** Frees the memory of the library immediately, or leaves that to the garbage collector. */
function tryToClose(handle: { close(): void } | undefined): void {
  try {
    handle?.close();
  } catch {
    // A cancelled query is still running.
  }
}
