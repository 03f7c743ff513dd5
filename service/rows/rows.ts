import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { CatalogError, type ErrorKind, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { LRUCache } from "lru-cache";
import { isAllowed } from "../auth/authenticator.ts";
import { foreignBasesOf, requireReadable } from "../commits/bases.ts";
import type { CommitParts } from "../commits/parts.ts";
import { requireBranch, requireVersion } from "../commits/read.ts";
import { type Change, type Commits, createCommits, type NewTable } from "../commits/series.ts";
import { branchOf } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import { type Location, parseLocation } from "../storage/location.ts";
import type { TableRecord } from "../store/tables.ts";
import type { VersionRecord } from "../store/versions.ts";
import {
  type ArgsOf,
  type Call,
  type Failure,
  failureTrailer,
  type ResultOf,
  readWhole,
  type TableAddress,
} from "./call.ts";
import type { Changes, Readings } from "./child/operations.ts";
import type { RowsQuery } from "./child/query.ts";
import { ChildEnded, type ChildOptions, createChild, type RowsChild } from "./child-process.ts";
import { type Attempt, createContained, type Sender } from "./contained.ts";
import { translate } from "./errors.ts";
import { createGateway, type ServedView } from "./gateway.ts";
import type { TableView } from "./table-view.ts";
import { viewOfTable, viewOfVersion } from "./view.ts";

/** Reads and writes the rows of tables in a child process that runs the Lance library. */
export interface Rows extends AsyncDisposable {
  /**
   * Reads one version of a table.
   *
   * @throws CatalogError TableNotFound, TableBranchNotFound, TableVersionNotFound, Unsupported
   */
  read<Name extends keyof Readings>(
    name: Name,
    at: VersionRequest,
    args: ArgsOf<Readings[Name]>,
  ): Promise<Reading<ResultOf<Readings[Name]>>>;
  /** Runs a query on one version. @returns Its rows as an Arrow IPC file. */
  query(at: VersionRequest, query: RowsQuery): Promise<ReadableStream<Uint8Array>>;
  /** Changes the latest version of a branch. The commits belong to the operation. */
  change<Name extends keyof Changes>(
    name: Name,
    change: Change,
    args: ArgsOf<Changes[Name]>,
    options?: ChangeOptions,
  ): Promise<Changed<ResultOf<Changes[Name]>>>;
}

export interface VersionRequest {
  readonly id: Identifier;
  readonly branch?: string | undefined;
  /** The version; the latest if undefined. */
  readonly version?: number | undefined;
  /** The caller. A principal whose calls crash the child is isolated from others. */
  readonly caller: Pick<Change["caller"], "principal">;
}

export interface Reading<Result> {
  readonly version: number;
  readonly result: Result;
}

export interface ChangeOptions {
  /** The Arrow stream of the operation. */
  readonly rows?: ReadableStream<Uint8Array>;
  /** A table without versions. A NewTable is created with its first one. */
  readonly empty?: TableRecord | NewTable | undefined;
  /** Enables stable row ids of a new table, which rows keep when they are moved or updated. */
  readonly stableRowIds?: boolean;
  /** Called after a failure that left no commit. */
  readonly onNothingCommitted?: () => Promise<void>;
}

export interface Changed<Result> {
  readonly result: Result;
  readonly table: TableRecord | NewTable;
  /** The transaction of the change in the format of responses; empty if nothing changed. */
  readonly transaction: { readonly transaction_id?: string };
}

/** The limits of caches. A view is served as long as the child may keep its version open, and a little longer. */
const basesKept = 10_000;
const viewsKept = { max: 128, ttl: 120_000, closedAfterMs: 60_000 };
/** The assumed size of a manifest of unknown size. */
const manifestBytesAssumed = 64 * 1024;
/** The maximum size of a response that is not streamed. */
const wholeBytesMax = 256 * 1024;
/** The maximum delay between the interruption of a response and the detection of the child's exit. */
const endNoticedWithinMs = 500;

export function createRows(parts: CommitParts, options: ChildOptions): Rows {
  const gateway = createGateway();
  const contained = createContained(createChild(options), createChild(options));
  const views = new LRUCache<string, ServedView>({
    ...viewsKept,
    updateAgeOnGet: true,
    ttlAutopurge: true,
    // Calls that use the view may still be running.
    dispose: (view) => void setTimeout(() => view[Symbol.dispose](), viewsKept.closedAfterMs).unref(),
  });

  /** The folders outside their tables that contain files of versions. */
  const bases = new LRUCache<string, readonly Location[]>({ max: basesKept });

  /** Requires that the caller may read all files of a version. @throws CatalogError PermissionDenied */
  async function requireFilesOf(
    { principal: { grants = [] } }: VersionRequest["caller"],
    { location }: TableRecord,
    { branch, manifestName: name }: VersionRecord,
    key?: string,
  ): Promise<void> {
    const kept = key === undefined ? undefined : bases.get(key);
    const foreign = kept ?? (await foreignBasesOf(parts, { location, branch, name }));
    if (key !== undefined) bases.set(key, foreign);
    await requireReadable(parts, foreign, (table) => isAllowed({ grants }, { role: "reader", object: table }));
  }

  /** Sends a call that reads. @param receive Reads the response. */
  async function read<Result>(
    operation: Call["operation"],
    at: VersionRequest,
    args: unknown,
    receive: (response: IncomingMessage, child: RowsChild) => Promise<Attempt<Result>>,
  ): Promise<Reading<Result>> {
    const branch = branchOf(at);
    const table = await requireTable(parts.store.read, at.id);
    await requireBranch(parts, table, branch);
    const record = await requireVersion(parts, table, branch, at.version);
    const { version, manifestName, eTag, transactionId, manifestSize = manifestBytesAssumed } = record;
    const key = JSON.stringify([table.id, table.location, branch, version, manifestName, eTag, transactionId]);
    await requireFilesOf(at.caller, table, record, key);
    await gateway.listen();
    const served = views.get(key) ?? gateway.serve(viewOfVersion(parts, table, record));
    views.set(key, served);
    const { uri, token } = served;
    const address = {
      uri,
      token,
      branch,
      version,
      keptBytes: manifestSize,
      ...(await storageOf(parts, table.location)),
    };
    try {
      const result = await contained.run(
        senderOf(operation, at.caller, at.id),
        async (child) => receive(await child.call({ operation, args, table: address }), child),
        () => true,
      );
      return { version, result };
    } catch (error) {
      const known = translated(error, served);
      // The next call opens the version again, unless the caller caused the failure.
      if (served.failure !== undefined || !(known instanceof CatalogError)) views.delete(key);
      throw known;
    }
  }

  async function attemptChange(
    call: Call,
    view: TableView,
    commits: Commits,
    child: RowsChild,
    options: ChangeOptions,
  ) {
    const served = gateway.serve(view);
    const { uri, token } = served;
    try {
      const response = await child.call({ ...call, table: { ...call.table, uri, token } }, options.rows);
      const result = await readJson(response);
      if (commits.held.length > 0) await commits.publish();
      return { result, settled: Promise.resolve(true) };
    } catch (error) {
      // A failed call must not commit later, and a commit in progress determines whether something changed.
      await served.close();
      await commits.discard().catch(() => undefined);
      if (error instanceof ChildEnded && commits.transactionName !== undefined)
        throw new CatalogError(
          "ConcurrentModification",
          `the change was committed (${commits.transactionName}), but the process that made it ended before it answered: do not repeat it`,
          { cause: error },
        );
      throw translated(error, served, options.rows !== undefined);
    } finally {
      served[Symbol.dispose]();
    }
  }

  return {
    read: (name, at, args) => read(name, at, args, async (response) => settled(await readJson(response))),
    query: async (at, query) => {
      const { result } = await read("query", at, query, async (response, child) => {
        if (response.statusCode !== 200) await readJson(response);
        if (Number(response.headers["content-length"]) <= wholeBytesMax)
          return settled(streamOf(await readAnswer(response)));
        const before = child.endings;
        const closed = new Promise<void>((resolve) => response.once("close", resolve));
        const isComplete = async () => {
          await closed;
          if (response.complete) return true;
          await sleep(endNoticedWithinMs);
          return child.endings === before;
        };
        return { result: ReadableStream.from(rowsOf(response)), settled: isComplete() };
      });
      return result;
    },
    change: async (name, change, args, options = {}) => {
      const { empty, stableRowIds } = options;
      const { id } = change.request;
      const branch = branchOf(change.request);
      const present = empty === undefined ? await requireTable(parts.store.read, id) : undefined;
      if (present !== undefined) await requireBranch(parts, present, branch);
      const latest = present && (await requireVersion(parts, present, branch, undefined));
      if (present !== undefined && latest !== undefined) await requireFilesOf(change.caller, present, latest);
      const version = latest?.version;
      const table = present ?? empty;
      if (table === undefined) throw new Error("a change has a table");
      await gateway.listen();
      const address = { branch, version, stableRowIds, ...(await storageOf(parts, table.location)) };
      let commits = createCommits(parts, change, table);
      try {
        const result = await contained.run(
          senderOf(name, change.caller, id),
          (child) => {
            commits = createCommits(parts, change, table);
            const call = { operation: name, args, table: { uri: "", token: "", ...address } };
            return attemptChange(call, viewOfTable(parts, table, commits), commits, child, options);
          },
          () => options.rows === undefined,
        );
        const { transactionName } = commits;
        const transaction = transactionName === undefined ? {} : { transaction_id: transactionName };
        return { result: result as never, table, transaction };
      } catch (error) {
        const isRefused =
          error instanceof CatalogError && (error.kind !== "ServiceUnavailable" || error.cause instanceof ChildEnded);
        if (commits.transactionName === undefined && isRefused) await options.onNothingCommitted?.();
        throw error;
      }
    },
    [Symbol.asyncDispose]: async () => {
      await contained[Symbol.asyncDispose]();
      views.clear();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

function settled<Result>(result: Result): Attempt<Result> {
  return { result, settled: Promise.resolve(true) };
}

/** Reads rows as the child sends them. @throws Error with the child's own text if they were interrupted. */
async function* rowsOf(response: IncomingMessage): AsyncGenerator<Uint8Array, void> {
  yield* response;
  const trailer = response.trailers[failureTrailer];
  if (trailer === undefined) return;
  const failure = JSON.parse(decodeURIComponent(trailer)) as Failure;
  throw new Error("text" in failure ? failure.text : failure.message);
}

function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}

function senderOf(operation: string, { principal }: VersionRequest["caller"], id: Identifier): Sender {
  return { principal: principal.name, call: `${operation} ${formatIdentifier(id)}` };
}

async function storageOf(parts: CommitParts, location: string): Promise<Pick<TableAddress, "storageOptions">> {
  const { libraryOptions } = await parts.storage.at(parseLocation(location));
  return { storageOptions: { ...libraryOptions } };
}

/** An error of the library with its own text. */
class LibraryError extends Error {
  override readonly name = "LibraryError";
}

async function readAnswer(response: IncomingMessage): Promise<Buffer> {
  try {
    return await readWhole(response);
  } catch (cause) {
    throw new ChildEnded("ended within its answer", { cause });
  }
}

/** Reads the response of the child. @throws CatalogError, LibraryError, ChildEnded */
async function readJson(response: IncomingMessage): Promise<never> {
  const answer: unknown = JSON.parse((await readAnswer(response)).toString("utf8"));
  if (response.statusCode === 200) return answer as never;
  // The child is part of the catalog and always writes valid failures.
  const failure = answer as Failure;
  if ("kind" in failure) throw new CatalogError(failure.kind as ErrorKind, failure.message);
  throw new LibraryError(failure.text);
}

/** Translates an error of the library. Any other error is unchanged. */
function translated(error: unknown, { failure }: ServedView, hasRows = false): unknown {
  return error instanceof LibraryError ? translate(error, failure, hasRows) : error;
}
