import type { Branches, Connection, Table } from "@lancedb/lancedb";
import { CatalogError, type Identifier } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { requireBranch, requireVersion } from "../commits/read.ts";
import { type Change, type Commits, createCommits, type NewTable } from "../commits/series.ts";
import { branchOf, mainBranch } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import { parseLocation } from "../storage/location.ts";
import type { TableRecord } from "../store/tables.ts";
import type { VersionRecord } from "../store/versions.ts";
import { translate } from "./errors.ts";
import { KeptVersions, type VersionKey } from "./kept-versions.ts";
import { createLibrary, type Library, type RawTable, rawConnectionOf, rawTableOf } from "./library.ts";
import type { Gateway, ServedView, TableView } from "./table-view.ts";
import { viewOfTable, viewOfVersion } from "./view.ts";

/** Opens tables with Lance's own library, for what the catalog's database does not hold. */
export interface Datasets extends AsyncDisposable {
  /**
   * Opens one version of a table for reading.
   *
   * @param request The latest version of main when it names none.
   * @throws CatalogError TableNotFound, TableBranchNotFound, TableVersionNotFound, Unsupported
   */
  openVersion(request: VersionRequest): Promise<OpenDataset>;
  /** Opens the latest version of a branch for changes, which are committed as the operation's. */
  openForChange(change: Change): Promise<ChangeableDataset>;
  /** Opens a table that has no version yet; a NewTable comes into being with its first. */
  openEmpty(change: Change, table: TableRecord | NewTable, options?: TableOptions): Promise<EmptyDataset>;
}

/** What a table is for all its life. */
export interface TableOptions {
  /** Whether rows keep their ids when they are moved or updated. */
  readonly stableRowIds?: boolean;
}

export interface VersionRequest {
  readonly id: Identifier;
  readonly branch?: string | undefined;
  readonly version?: number | undefined;
}

export interface OpenDataset extends AsyncDisposable {
  /** The table in the catalog's database. */
  readonly record: TableRecord;
  readonly version: number;
  readonly lancedb: Library["lancedb"];
  /** Does work with the table. What fails in the library becomes a CatalogError where the caller can act on it. */
  run<Result>(work: (table: Table) => Promise<Result>): Promise<Result>;
  /** The columns of the table, as it was opened, as an IPC file without rows. */
  schema(): Promise<Buffer>;
  /** The same with the part of the table that takes and gives bytes. */
  runRaw<Result>(work: (table: RawTable) => Promise<Result>): Promise<Result>;
}

export interface ChangeableDataset extends OpenDataset {
  readonly isEmpty: false;
  readonly commits: Commits;
  /** Makes a version that has only the columns of an Arrow IPC file, which has no rows. @returns Its version. */
  create(file: Buffer): Promise<number>;
}

export interface EmptyDataset extends Pick<OpenDataset, "runRaw">, AsyncDisposable {
  readonly isEmpty: true;
  readonly commits: Commits;
  /** Makes the first version from an Arrow IPC file. From then on there is a table. @returns Its version. */
  create(file: Buffer): Promise<number>;
}

/** Of a manifest whose size is not known. */
const manifestBytesAssumed = 64 * 1024;

/** What the library calls the table: each view has only one. */
const name = { namespace: ["view"], table: "table" } as const;

export function createDatasets(parts: CommitParts, gateway: Gateway): Datasets {
  const library = createLibrary();
  const kept = new KeptVersions<Opened>();

  async function connect(location: string, view: TableView): Promise<Opened> {
    const { lancedb, session } = await library();
    const objects = await parts.storage.at(parseLocation(location));
    const served = await gateway.serve(view);
    const connection = await lancedb.connectNamespace(
      "rest",
      { uri: served.uri, headers: { authorization: `Bearer ${served.token}` } },
      { session, storageOptions: { ...objects.libraryOptions } },
    );
    return new Opened(lancedb, connection, served);
  }

  return {
    openVersion: async (request) => {
      const { read } = parts.store;
      const branch = branchOf(request);
      const record = await requireTable(read, request.id);
      await requireBranch(parts, record, branch);
      const version = await requireVersion(parts, record, branch, request.version);
      const lease = await kept.lease(keyOf(record, version), async () => {
        const opened = await connect(record.location, viewOfVersion(parts, record, version));
        await opened.openTable(branch, version.version);
        return opened;
      });
      const { opened } = lease;
      return {
        record,
        version: version.version,
        lancedb: opened.lancedb,
        schema: () => opened.schema(),
        run: (work) => opened.run(work),
        runRaw: (work) => opened.runRaw(work),
        [Symbol.asyncDispose]: async () => lease[Symbol.dispose](),
      };
    },
    openForChange: async (change) => {
      const { read } = parts.store;
      const branch = branchOf(change.request);
      const record = await requireTable(read, change.request.id);
      await requireBranch(parts, record, branch);
      const { version } = await requireVersion(parts, record, branch, undefined);
      const commits = createCommits(parts, change, record);
      const opened = await connect(record.location, viewOfTable(parts, record, commits));
      await opened.openTable(branch, undefined);
      return Object.assign(opened, { isEmpty: false as const, record, version, commits });
    },
    openEmpty: async (change, table, { stableRowIds = false } = {}) => {
      const commits = createCommits(parts, change, table);
      const opened = await connect(table.location, viewOfTable(parts, table, commits));
      opened.newTableOptions = stableRowIds ? { new_table_enable_stable_row_ids: "true" } : {};
      return Object.assign(opened, { isEmpty: true as const, commits });
    },
    [Symbol.asyncDispose]: async () => {
      kept[Symbol.dispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

function keyOf(table: TableRecord, record: VersionRecord): VersionKey {
  const { branch, version, manifestName, eTag, transactionId, manifestSize = manifestBytesAssumed } = record;
  const key = JSON.stringify([table.id, table.location, branch, version, manifestName, eTag, transactionId]);
  return { key, manifestBytes: manifestSize };
}

/** A connection of the library, and the table that it opened. */
class Opened implements AsyncDisposable {
  readonly lancedb: Library["lancedb"];
  isBroken = false;
  /** In the library's words. */
  newTableOptions: Readonly<Record<string, string>> = {};
  readonly #connection: Connection;
  readonly #served: ServedView;
  #table: Table | undefined;
  #raw: RawTable | undefined;
  #schema: Buffer | undefined;

  constructor(lancedb: Library["lancedb"], connection: Connection, served: ServedView) {
    this.lancedb = lancedb;
    this.#connection = connection;
    this.#served = served;
  }

  /** Closes itself when that fails. */
  async openTable(branch: string, version: number | undefined): Promise<void> {
    try {
      await this.#translating(async () => {
        const main = await this.#connection.openTable(name.table, [...name.namespace]);
        this.#table = main;
        if (branch === mainBranch) return;
        const branches: Branches = await main.branches();
        this.#table = await branches.checkout(branch, version);
      });
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async create(file: Buffer): Promise<number> {
    return this.#translating(async () => {
      const connection = rawConnectionOf(this.#connection);
      // It is not opened again: that would place a manifest that is held back.
      const mode = this.#table === undefined ? "create" : "overwrite";
      this.#raw = await connection.createTable(name.table, file, mode, name.namespace, this.newTableOptions);
      return this.#raw.version();
    });
  }

  /** Of the version as it was opened: it is read once. */
  async schema(): Promise<Buffer> {
    this.#schema ??= await this.runRaw((table) => table.schema());
    return this.#schema;
  }

  async run<Result>(work: (table: Table) => Promise<Result>): Promise<Result> {
    const table = this.#table;
    if (table === undefined) throw new Error("the table is not open");
    return this.#translating(() => work(table));
  }

  async runRaw<Result>(work: (table: RawTable) => Promise<Result>): Promise<Result> {
    const raw = this.#raw ?? (this.#table && rawTableOf(this.#table));
    if (raw === undefined) throw new Error("the table is not open");
    return this.#translating(() => work(raw));
  }

  async #translating<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      const { failure } = this.#served;
      const told = translate(error, failure);
      // An error that the caller can act on does not break the open version.
      this.isBroken ||= failure !== undefined || !(told instanceof CatalogError);
      throw told;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#served[Symbol.dispose]();
    // The library still holds what it has just worked with until the event loop goes on.
    setImmediate(() => {
      for (const each of [this.#table ?? this.#raw, this.#connection]) tryToClose(each);
    });
  }
}

/** Frees the library's memory at once, or leaves it to the garbage collector. */
function tryToClose(handle: { close(): void } | undefined): void {
  try {
    handle?.close();
  } catch {
    // A cancelled query is still under way.
  }
}
