import type { Branches, Connection, Table } from "@lancedb/lancedb";
import { mainBranch } from "../../domain/branch.ts";
import type { TableAddress } from "../call.ts";
import { KeptVersions } from "./kept-versions.ts";
import { createLibrary, type Library, type RawTable, rawConnectionOf, rawTableOf } from "./lancedb.ts";

/** Opens tables through the catalog and keeps versions open between reads. */
export interface Tables {
  /** Opens a table for one call. A version that remains open is shared between calls. */
  open(address: TableAddress): Promise<OpenTable>;
}

/** The namespace and the name of the table in the library's requests. Each token has only one table. */
const name = { namespace: ["view"], table: "table" } as const;

export function createTables(memoryBytes: number): Tables {
  const library = createLibrary(memoryBytes);
  const kept = new KeptVersions<Opened>();

  async function open(address: TableAddress): Promise<Opened> {
    const { lancedb, session } = await library();
    const connection = await lancedb.connectNamespace(
      "rest",
      { uri: address.uri, headers: { authorization: `Bearer ${address.token}` } },
      { session, storageOptions: { ...address.storageOptions } },
    );
    const opened = new Opened(lancedb, connection, address);
    await opened.openTable();
    return opened;
  }

  return {
    open: async (address) => {
      const { token, keptBytes } = address;
      if (keptBytes === undefined) return new OpenTable(await open(address));
      const lease = await kept.lease({ key: token, manifestBytes: keptBytes }, () => open(address));
      return new OpenTable(lease.opened, () => lease[Symbol.dispose]());
    },
  };
}

/** An open table for one call. */
export class OpenTable implements AsyncDisposable {
  readonly #opened: Opened;
  readonly #close: (() => void) | undefined;

  constructor(opened: Opened, close?: () => void) {
    this.#opened = opened;
    this.#close = close;
  }

  get lancedb(): Library["lancedb"] {
    return this.#opened.lancedb;
  }

  get isEmpty(): boolean {
    return this.#opened.address.version === undefined;
  }

  /** The opened version. */
  get version(): number {
    return this.#opened.address.version ?? 0;
  }

  get table(): Table {
    const { table } = this.#opened;
    if (table === undefined) throw new Error("the table has no version yet");
    return table;
  }

  /** The part of the table that accepts and returns bytes. */
  get raw(): RawTable {
    return this.#opened.raw ?? rawTableOf(this.table);
  }

  /** Returns the columns of the opened version as an IPC file without rows. */
  schema(): Promise<Buffer> {
    return this.#opened.schema();
  }

  /** Creates the first version of a table with the rows of an Arrow IPC file. @returns Its number. */
  create(file: Buffer): Promise<number> {
    return this.#opened.create(file);
  }

  /** Requests that the catalog holds back the versions of this call until all of them exist. */
  async hold(): Promise<void> {
    const { uri, token } = this.#opened.address;
    const response = await fetch(`${uri}/hold`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`the catalog answered ${response.status} to hold`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#close === undefined) await this.#opened[Symbol.asyncDispose]();
    else this.#close();
  }
}

/** A connection of the library with its opened table. */
class Opened implements AsyncDisposable {
  readonly lancedb: Library["lancedb"];
  readonly address: TableAddress;
  readonly #connection: Connection;
  table: Table | undefined;
  raw: RawTable | undefined;
  #schema: Promise<Buffer> | undefined;

  constructor(lancedb: Library["lancedb"], connection: Connection, address: TableAddress) {
    this.lancedb = lancedb;
    this.#connection = connection;
    this.address = address;
  }

  /** Opens the table. Closes the connection after a failure. */
  async openTable(): Promise<void> {
    const { branch, version, keptBytes } = this.address;
    if (version === undefined) return;
    try {
      this.table = await this.#connection.openTable(name.table, [...name.namespace]);
      if (branch === mainBranch) return;
      const branches: Branches = await this.table.branches();
      // A change begins with the latest version of the branch, like a change of main.
      this.table = await branches.checkout(branch, keptBytes === undefined ? undefined : version);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async create(file: Buffer): Promise<number> {
    const connection = rawConnectionOf(this.#connection);
    const options: Record<string, string> = this.address.stableRowIds
      ? { new_table_enable_stable_row_ids: "true" }
      : {};
    // The table is not opened again, because that would place a held-back manifest.
    this.raw = await connection.createTable(name.table, file, "create", name.namespace, options);
    return this.raw.version();
  }

  schema(): Promise<Buffer> {
    if (this.table === undefined) throw new Error("the table has no version yet");
    this.#schema ??= rawTableOf(this.table).schema();
    return this.#schema;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The library holds its latest results until the event loop continues.
    setImmediate(() => {
      for (const each of [this.table ?? this.raw, this.#connection]) tryToClose(each);
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
