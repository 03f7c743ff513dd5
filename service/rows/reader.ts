import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import {
  type ArgsOf,
  type Attempt,
  type Call,
  type Deadlines,
  type ReadOperations,
  type ResultOf,
  type RowsQuery,
  readBody,
  readJson,
  rowsOf,
  type WatchedChild,
} from "@tiltyard/lance-worker";
import { CatalogError, type Identifier, type TableVersion } from "@tiltyard/protocol";
import { LRUCache } from "lru-cache";
import { withRole } from "../auth/authorize.ts";
import { readContent, requireReadable, type VersionContent } from "../commits/bases.ts";
import { openBranch, requireVersion, toTableVersion } from "../commits/read.ts";
import type { Origin } from "../domain/transaction.ts";
import type { TableRecord } from "../store/tables.ts";
import { callBy, type RowsDeps } from "./deps.ts";
import { translateFailure } from "./errors.ts";
import type { ServedView } from "./gateway.ts";
import { viewOfVersion } from "./view.ts";
import { withPlainZones } from "./zoned-view.ts";

export interface Reader {
  /** @throws CatalogError TableNotFound, TableBranchNotFound, TableVersionNotFound, PermissionDenied, Unsupported */
  read<Name extends keyof ReadOperations>(
    name: Name,
    at: ReadRequest,
    args: ArgsOf<ReadOperations[Name]>,
  ): Promise<ReadResult<ResultOf<ReadOperations[Name]>>>;
  readUnrecorded<Name extends keyof ReadOperations>(
    name: Name,
    at: UnrecordedVersion,
    args: ArgsOf<ReadOperations[Name]>,
  ): Promise<ResultOf<ReadOperations[Name]>>;
  /** Runs a query on one version. @returns Its rows as an Arrow IPC file. */
  query(at: ReadRequest, query: RowsQuery): Promise<ReadableStream<Uint8Array>>;
}

export interface ReadRequest {
  readonly id: Identifier;
  readonly branch?: string | undefined;
  readonly version?: number | undefined;
  readonly caller: Origin;
}

export interface UnrecordedVersion {
  readonly table: TableRecord;
  readonly branch: string;
  readonly staged: TableVersion;
  readonly caller: Origin;
}

export interface ReadResult<Result> {
  readonly version: number;
  readonly result: Result;
}

/** A slow read is repeated alone, with the timeout of LanceDB's remote client. */
const deadlines: Deadlines = { sharedMs: 60_000, aloneMs: 300_000 };
const contentsKept = 10_000;
/** The limits of views, each of which is served a little longer than the child may keep its version open. */
const viewsKept = { max: 128, ttl: 120_000, closedAfterMs: 60_000 };
/** The assumed size of a manifest of unknown size. */
const manifestBytesAssumed = 64 * 1024;
/** The maximum size of a response that is not streamed. */
const wholeBytesMax = 256 * 1024;
/** The maximum delay between the interruption of a response and the detection of the child's exit. */
const endNoticedWithinMs = 500;

export function createReader(deps: RowsDeps): Reader & Disposable {
  const { gateway, isolation } = deps;
  const views = new LRUCache<string, ServedView>({
    ...viewsKept,
    updateAgeOnGet: true,
    ttlAutopurge: true,
    // Calls that use the view may still be running.
    dispose: (view) => void setTimeout(() => view[Symbol.dispose](), viewsKept.closedAfterMs).unref(),
  });
  const contents = new LRUCache<string, VersionContent>({ max: contentsKept });

  /** Sends a call. @param receive Reads the response. */
  async function send<Result>(
    operation: Call["operation"],
    at: ReadRequest,
    args: unknown,
    receive: (response: IncomingMessage, child: WatchedChild) => Promise<Attempt<Result>>,
  ): Promise<ReadResult<Result>> {
    const opened = await openBranch(deps, at);
    const { table, branch } = opened;
    const record = await requireVersion(deps, opened, at.version);
    const { version, manifestName, eTag, transactionId, manifestSize = manifestBytesAssumed } = record;
    const key = JSON.stringify([table.id, table.location.uri, branch, version, manifestName, eTag, transactionId]);
    const manifest = { location: table.location, branch, name: manifestName };
    const read = () => readContent(deps, manifest);
    const content = contents.get(key) ?? (await read());
    contents.set(key, content);
    await requireReadable(deps, content.foreign, withRole(at.caller.principal, "reader"));
    await gateway.listen();
    // The library may open the version several times, and another writer of the folder may replace its manifest.
    const requireSame = async () => {
      if (isDeepStrictEqual(await read(), content)) return;
      contents.delete(key);
      throw new CatalogError("ConcurrentModification", `the manifest ${manifestName} was replaced. Retry the request`);
    };
    const pinned = toTableVersion({ location: table.location, record });
    const view = viewOfVersion(deps, table, branch, pinned, requireSame);
    const { libraryOptions: storageOptions } = await deps.storage.at(table.location);
    const run = async (served: ServedView, cachedManifestBytes?: number): Promise<ReadResult<Result>> => {
      const { uri, token } = served;
      const address = { uri, token, branch, version, cachedManifestBytes, storageOptions };
      try {
        const result = await isolation.run(
          callBy(operation, at.caller, at.id, deadlines),
          async (child) => receive(await child.call({ operation, args, table: address }), child),
          () => true,
        );
        return { version, result };
      } catch (error) {
        const known = await translateFailure(deps, { table, branch, zoned: content.zoned }, error, served);
        // The next call opens the version again, unless the caller caused the failure.
        if (served.failure !== undefined || !(known instanceof CatalogError)) views.delete(key);
        throw known;
      }
    };
    if (content.zoned.length > 0) {
      await using plain = withPlainZones(deps, table.location, view);
      using served = gateway.serve(plain.view);
      return await run(served);
    }
    const served = views.get(key) ?? gateway.serve(view);
    views.set(key, served);
    return run(served, manifestSize);
  }

  return {
    read: (name, at, args) => send(name, at, args, async (response) => ({ result: await readJson(response) })),
    readUnrecorded: async (operation, { table, branch, staged, caller }, args) => {
      await gateway.listen();
      using served = gateway.serve(viewOfVersion(deps, table, branch, staged));
      const { uri, token } = served;
      const { libraryOptions: storageOptions } = await deps.storage.at(table.location);
      const address = { uri, token, branch, version: staged.version, storageOptions };
      try {
        return await isolation.run(
          callBy(operation, caller, table.identifier, deadlines),
          async (child) => ({ result: await readJson(await child.call({ operation, args, table: address })) }),
          () => true,
        );
      } catch (error) {
        throw await translateFailure(deps, { table, branch }, error, served);
      }
    },
    query: async (at, query) => {
      const { result } = await send("query", at, query, async (response, child) => {
        if (response.statusCode !== 200) await readJson(response);
        if (Number(response.headers["content-length"]) <= wholeBytesMax)
          return { result: ReadableStream.from<Uint8Array>([await readBody(response)]) };
        const before = child.endings;
        const closed = new Promise<void>((resolve) => response.once("close", resolve));
        const isComplete = async () => {
          await closed;
          if (response.complete) return true;
          await sleep(endNoticedWithinMs);
          return child.endings === before;
        };
        return { result: ReadableStream.from(rowsOf(response, child.within)), completed: isComplete() };
      });
      return result;
    },
    [Symbol.dispose]: () => views.clear(),
  };
}
