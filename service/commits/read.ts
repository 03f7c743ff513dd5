import { CatalogError, formatIdentifier, type Identifier, mainBranch, type TableVersion } from "@tiltyard/protocol";
import { z } from "zod";
import { type PageRequest, readPage } from "../domain/page.ts";
import { branchNotFound, branchOf, requireTable } from "../domain/require.ts";
import { Manifest } from "../lance/manifest.ts";
import { manifestBytesMax, versionsFolder } from "../lance/version-names.ts";
import type { Location } from "../storage/location.ts";
import { type ObjectStore, TooLargeError } from "../storage/object-store.ts";
import { findBranch } from "../store/branches.ts";
import type { TableRecord } from "../store/tables.ts";
import {
  findVersion,
  isHidden,
  type LocatedVersion,
  latestVersion,
  listVersions,
  type VersionRecord,
} from "../store/versions.ts";
import { findView, type ViewRecord } from "../store/views.ts";
import { definitionIn } from "../views/definition.ts";
import { catchUp, type TableBranch } from "./adopt.ts";
import type { CommitDeps } from "./deps.ts";
import { filesOf } from "./discover.ts";
import { forgetCleanedUp } from "./forget-cleaned-up.ts";

export interface BranchRequest {
  readonly id: Identifier;
  readonly branch?: string | undefined;
}

/** Opens the branch of a request. @throws CatalogError InvalidInput, TableNotFound, TableBranchNotFound */
export async function openBranch(deps: CommitDeps, request: BranchRequest) {
  const branch = branchOf(request);
  return openBranchOf(deps, { table: await requireTable(deps.store.read, request.id), branch });
}

/** Opens a branch, which is `main` or has a version of any writer. @throws CatalogError TableBranchNotFound */
export async function openBranchOf(deps: CommitDeps, { table, branch }: TableBranch) {
  const isKnown =
    branch === mainBranch ||
    (await findBranch(deps.store.read, { table, branch }))?.highestVersion !== undefined ||
    (await catchUp(deps, { table, branch })) !== undefined;
  if (!isKnown) throw branchNotFound(table, branch);
  return filesOf(deps.storage, { table, branch });
}

/** Opens a branch and adopts it if it has no records, so that its versions are known before their deletion. */
export async function openKnownBranch(deps: CommitDeps, request: BranchRequest): Promise<TableBranch> {
  const at = await openBranch(deps, request);
  if ((await findBranch(deps.store.read, at))?.highestVersion === undefined) await catchUp(deps, at);
  return at;
}

/** Reports whether a branch has a version, possibly of a writer outside the catalog. */
export async function isWritten(deps: CommitDeps, at: TableBranch): Promise<boolean> {
  const latest = await latestVersion(deps.store.read, at);
  return latest !== undefined || (await catchUp(deps, at)) !== undefined;
}

/** Reads records and finishes them, without withdrawn ones. @throws CatalogError ServiceUnavailable */
async function readFinished(
  deps: CommitDeps,
  location: Location,
  read: () => Promise<VersionRecord[]>,
): Promise<VersionRecord[]> {
  const records = await read();
  if (records.every((record) => record.state === "finished")) return records;
  const finished = await Promise.all(records.map((record) => deps.finishing.finish({ location, record })));
  // After a withdrawal, the previous record is the latest.
  return finished.includes(undefined)
    ? readFinished(deps, location, read)
    : finished.filter((record) => record !== undefined);
}

/** The metadata of a version may have 256 KiB. */
const versionsAtOnce = 25;

interface VersionPageRequest extends PageRequest {
  readonly descending?: boolean | undefined;
}

/** Reads a page of the versions of a branch by any writer, without those that clients cleaned up. */
export async function readVersionRecords(deps: CommitDeps, at: TableBranch, request: VersionPageRequest) {
  const { table, branch } = at;
  if (!request.page_token) await catchUp(deps, at);
  const descending = request.descending ?? false;
  const readOnce = () =>
    readPage(
      { name: `versions ${branch} ${descending ? "descending" : "ascending"}`, key: z.int(), atOnce: versionsAtOnce },
      request,
      (after, limit) => {
        const read = () => listVersions(deps.store.read, at, { after, limit, descending });
        return readFinished(deps, table.location, read);
      },
      (record) => record.version,
    );
  const page = await readOnce();
  return (await forgetCleanedUp(deps, at, page.items)) ? readOnce() : page;
}

/** Reads a page of the versions of a branch, including those of writers outside the catalog. */
export async function readVersions(deps: CommitDeps, at: TableBranch, request: VersionPageRequest) {
  const { items, ...page } = await readVersionRecords(deps, at, request);
  return { versions: items.map((record) => toTableVersion({ location: at.table.location, record })), ...page };
}

/** Reads a placed version, by default the latest. @throws CatalogError TableVersionNotFound, ServiceUnavailable */
export async function requireVersion(deps: CommitDeps, at: TableBranch, version: number | undefined) {
  const { table, branch } = at;
  const read = async () => {
    const record = await findVersion(deps.store.read, at, version ?? 0);
    return record === undefined || isHidden(record) ? [] : [record];
  };
  const find = async () => (await readFinished(deps, table.location, read))[0];
  let found = version === undefined ? await catchUp(deps, at) : await find();
  if (found === undefined && version !== undefined) {
    // A record may have been withdrawn because a writer outside the catalog owns the version.
    await catchUp(deps, at);
    found = await find();
  }
  if (found !== undefined) return found;
  throw new CatalogError(
    "TableVersionNotFound",
    `table ${formatIdentifier(table.identifier)} has no version${version === undefined ? "" : ` ${version}`} on branch ${branch}`,
  );
}

export interface ManifestLimits {
  readonly bytesMax?: number;
  /** The maximum size of a manifest that is in memory at the same time as others. */
  readonly sharedBytesMax?: number;
}

/**
 * Reads and parses the manifest of a placed version.
 *
 * @param parse Is like that of `parseManifest`.
 * @throws CatalogError Unsupported; ConcurrentModification, because a staged manifest may be placed at any time; InvalidTableState if
 * the manifest is larger than `bytesMax`.
 */
export async function readManifest<Result>(
  { storage }: Pick<CommitDeps, "storage">,
  { location }: Pick<TableRecord, "location">,
  record: VersionRecord,
  parse: (manifest: Manifest) => Result | Promise<Result>,
  limits?: ManifestLimits,
): Promise<Result> {
  const objects = await storage.at(location);
  const read = (bytesMax: number) => readPlaced(objects, { location, record }, bytesMax);
  return parseManifest(read, async (file) => parse(await Manifest.read(file)), limits);
}

/** Reads the manifest of a placed version. @throws CatalogError ConcurrentModification, TooLargeError */
export async function readPlaced(objects: Pick<ObjectStore, "read">, version: LocatedVersion, bytesMax: number) {
  const { manifest_path: path } = toTableVersion(version);
  const read = await objects.read(path, bytesMax);
  if (read === undefined) throw new CatalogError("ConcurrentModification", `no manifest exists at ${path}`);
  return read.bytes;
}

export function toTableVersion({ location, record }: LocatedVersion): TableVersion {
  return {
    version: record.version,
    manifest_path: `${versionsFolder(location, record.branch)}/${record.manifestName}`,
    manifest_size: record.manifestSize,
    e_tag: record.eTag,
    timestamp_millis: record.timestampMillis,
    metadata: record.metadata && { ...record.metadata },
  };
}

/**
 * Returns the definition of a view; undefined if a table has none. Geneva executes the definition in the schema of the
 * latest version, which writers can change without the catalog.
 *
 * @throws CatalogError InvalidTableState if that definition has no definer.
 */
export async function viewOf(deps: CommitDeps, table: TableRecord): Promise<ViewRecord | undefined> {
  const view = await findView(deps.store.read, table.id);
  const latest = await catchUp(deps, { table, branch: mainBranch });
  const definition = latest && (await readManifest(deps, table, latest, definitionIn));
  if (definition === undefined || definition.schemaDigest === view?.schemaDigest) return view;
  throw new CatalogError(
    "InvalidTableState",
    `the definition of the view ${formatIdentifier(table.identifier)} was written without the catalog, so it has no definer: create the view again`,
  );
}

/** The maximum size of a manifest that is read at the same time as others. */
const smallBytesMax = 8 * 1024 * 1024;
let lastLarge: Promise<unknown> = Promise.resolve();

/**
 * Reads a manifest and parses it at once. Large manifests of all requests are in memory one after the other.
 *
 * @param read Reads up to a number of bytes, possibly several manifests. @throws TooLargeError
 * @param parse Also writes what it makes of the manifest. Its result must not refer to the manifest, and it must not read
 * another one, which would wait for this one.
 */
export async function parseManifest<Read, Result>(
  read: (bytesMax: number) => Promise<Read>,
  parse: (read: Read) => Result | Promise<Result>,
  { bytesMax = manifestBytesMax, sharedBytesMax = smallBytesMax }: ManifestLimits = {},
): Promise<Result> {
  const small = await read(Math.min(bytesMax, sharedBytesMax)).then(
    (found) => ({ found }),
    (error) => {
      if (!(error instanceof TooLargeError) || bytesMax <= sharedBytesMax) throw error;
      return undefined;
    },
  );
  if (small !== undefined) return parse(small.found);
  const result = lastLarge.then(async () => parse(await read(bytesMax)));
  lastLarge = result.catch(() => undefined);
  return result;
}
