import {
  type ArgsOf,
  type Attempt,
  type ChangeOperations,
  ChildEnded,
  type Deadlines,
  LibraryError,
  namesOf,
  type ResultOf,
  readJson,
  type WatchedChild,
} from "@tiltyard/lance-worker";
import { CatalogError, hasKind } from "@tiltyard/protocol";
import { withRole } from "../auth/authorize.ts";
import { readContent, requireReadable } from "../commits/bases.ts";
import { VersionInDoubtError } from "../commits/finish.ts";
import { openBranch, readManifest, requireVersion } from "../commits/read.ts";
import { type BranchChange, createCommits, type NewTable } from "../commits/series.ts";
import { branchOf } from "../domain/require.ts";
import { metadataLimitAfter } from "../lance/metadata-limit.ts";
import type { ZonedColumn } from "../lance/zones.ts";
import { CommitInDoubtError } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { callBy, type RowsDeps } from "./deps.ts";
import { translateFailure, unreadableZone } from "./errors.ts";
import { type ChangeArgs, guardFunctionColumns, unguarded } from "./function-columns.ts";
import type { TableView } from "./gateway.ts";
import { inheritIndices } from "./inherited-indices.ts";
import { viewOfTable } from "./view.ts";
import { withPlainZones } from "./zoned-view.ts";

/** Changes the latest version of a branch. The commits belong to the operation. */
export type ChangeRows = <Name extends keyof ChangeOperations>(
  name: Name,
  change: BranchChange,
  args: ArgsOf<ChangeOperations[Name]>,
  options?: ChangeOptions,
) => Promise<Changed<ResultOf<ChangeOperations[Name]>>>;

export interface ChangeOptions {
  readonly rows?: ReadableStream<Uint8Array>;
  /** A table without versions. A NewTable is created with its first one. */
  readonly empty?: TableRecord | NewTable | undefined;
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

/** An index may last long, and rows may arrive slowly: the time is that of a request. */
const deadlines: Deadlines = { sharedMs: 3_600_000, aloneMs: 3_600_000 };

export function createChange(deps: RowsDeps): ChangeRows {
  return async (name, change, args, options = {}) => {
    const { rows, empty, stableRowIds } = options;
    const { caller } = change;
    const { id } = change.request;
    const branch = branchOf(change.request);
    const { table, latest, zoned, fileVersion } =
      empty === undefined
        ? await latestOf(deps, change)
        : { table: empty, latest: undefined, zoned: [], fileVersion: "" };
    if (name === "createIndex") requireIndexable(zoned, args as ArgsOf<ChangeOperations["createIndex"]>);
    const { computed, alongside } =
      latest === undefined ? unguarded : await guardFunctionColumns(deps, table, latest, name, args as ChangeArgs);
    const ofMetadata = name === "updateFieldMetadata" && latest !== undefined;
    const guarded: BranchChange = {
      ...change,
      metadataBytesMax: ofMetadata ? await readManifest(deps, table, latest, metadataLimitAfter) : undefined,
      alongside: async (session, present) => {
        await change.alongside?.(session, present);
        await alongside?.(session);
      },
    };
    await deps.gateway.listen();
    const { libraryOptions: storageOptions } = await deps.storage.at(table.location);
    const address = { branch, version: latest?.version, fileVersion, stableRowIds, computed, storageOptions };
    let lastCommits = createCommits(deps, guarded, table, latest);
    const rewriting =
      name === "createBranch" && latest !== undefined
        ? await inheritIndices(deps, { table, branch }, args as ArgsOf<ChangeOperations["createBranch"]>)
        : (view: TableView) => view;

    async function attempt(child: WatchedChild): Promise<Attempt<unknown>> {
      const commits = createCommits(deps, guarded, table, latest);
      lastCommits = commits;
      const view = rewriting(viewOfTable(deps, table, commits));
      await using plain = zoned.length > 0 ? withPlainZones(deps, table.location, view) : undefined;
      const served = deps.gateway.serve(plain?.view ?? view);
      const { uri, token } = served;
      try {
        const response = await child.call({ operation: name, args, table: { uri, token, ...address } }, rows);
        const result = await readJson(response);
        if (commits.held.length > 0) await commits.publish();
        return { result };
      } catch (error) {
        // A failed call must not commit later, and a commit in progress determines whether something changed.
        await served.close();
        await commits.discard().catch(() => undefined);
        const { transactionName } = commits;
        const doubt = transactionName && doubtOf(transactionName, error, served.failure);
        if (doubt) throw new CatalogError("ConcurrentModification", doubt, { cause: error });
        const known = await translateFailure(deps, { table, branch, zoned }, error, served, rows !== undefined);
        if (transactionName && error instanceof LibraryError && hasKind(known, "ServiceUnavailable")) {
          const problem = committed(transactionName, "its storage failed afterwards");
          throw new CatalogError("ConcurrentModification", problem, { cause: error });
        }
        throw known;
      } finally {
        served[Symbol.dispose]();
      }
    }

    try {
      const result = await deps.isolation.run(callBy(name, caller, id, deadlines), attempt, () => rows === undefined);
      const { transactionName } = lastCommits;
      const transaction = transactionName === undefined ? {} : { transaction_id: transactionName };
      return { result: result as never, table, transaction };
    } catch (error) {
      const isRefused =
        error instanceof CatalogError &&
        (error.kind !== "ServiceUnavailable" ||
          error.cause instanceof ChildEnded ||
          error.cause instanceof LibraryError);
      if (lastCommits.transactionName === undefined && isRefused) await options.onNothingCommitted?.();
      throw error;
    }
  };
}

/** Returns a table and the latest version of a branch, all files of which the caller may read. */
async function latestOf(deps: RowsDeps, { request, caller }: BranchChange) {
  const at = await openBranch(deps, request);
  const { table, branch } = at;
  const latest = await requireVersion(deps, at, undefined);
  const manifest = { location: table.location, branch, name: latest.manifestName };
  const { foreign, zoned, fileVersion } = await readContent(deps, manifest);
  await requireReadable(deps, foreign, withRole(caller.principal, "reader"));
  return { table, latest, zoned, fileVersion };
}

/** Requires a column whose index the library can build. @throws CatalogError Unsupported */
function requireIndexable(zoned: readonly ZonedColumn[], { column }: { readonly column: string }): void {
  // Like Lance, this accepts a name in any case.
  const [top] = namesOf(column.toLowerCase());
  const found = zoned.find(({ name }) => name.toLowerCase() === top);
  if (found !== undefined) throw unreadableZone(found);
}

/** Describes a failure after which the change exists, or may exist; undefined if it does not. */
function doubtOf(transaction: string, error: unknown, ofGateway: unknown): string | undefined {
  const failures = [error, ofGateway];
  if (failures.some((each) => each instanceof CommitInDoubtError))
    return `the change may be committed (${transaction}), because the connection to the database broke during the commit. Repeat it only if this transaction does not exist`;
  const isPending = failures.some((each) => each instanceof VersionInDoubtError);
  if (!isPending && !(error instanceof ChildEnded)) return undefined;
  const reason = isPending ? "its manifest cannot be placed yet" : "its process stopped before the response";
  return committed(transaction, reason);
}

function committed(transaction: string, problem: string): string {
  return `the change was committed (${transaction}), but ${problem}. Do not repeat it`;
}
