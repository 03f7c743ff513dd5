import { CatalogError, formatIdentifier, type TableVersion } from "@tiltyard/protocol";
import { z } from "zod";
import { mainBranch } from "../domain/branch.ts";
import { type PageRequest, readPage } from "../domain/page.ts";
import { branchNotFound } from "../domain/require.ts";
import { parseLocation } from "../storage/location.ts";
import { findBranch } from "../store/branches.ts";
import type { TableRecord } from "../store/tables.ts";
import { findVersion, latestVersion, listVersions, type VersionRecord } from "../store/versions.ts";
import { catchUp } from "./adopt.ts";
import { forgetCleanedUp } from "./forget-cleaned-up.ts";
import { manifestBytesMax, versionsFolder } from "./manifest.ts";
import type { CommitParts } from "./parts.ts";

/**
 * Requires that a branch exists: it is `main` or has a version, possibly of a writer outside the catalog.
 *
 * @throws CatalogError TableBranchNotFound
 */
export async function requireBranch(parts: CommitParts, table: TableRecord, branch: string): Promise<void> {
  if (branch === mainBranch) return;
  if ((await findBranch(parts.store.read, table.id, branch))?.highestVersion !== undefined) return;
  if ((await catchUp(parts, table, branch)) !== undefined) return;
  throw branchNotFound(table, branch);
}

/**
 * Requires that a branch exists, and adopts it if it has no records, so that its versions are known before their
 * deletion.
 */
export async function requireKnownBranch(parts: CommitParts, table: TableRecord, branch: string): Promise<void> {
  if ((await findBranch(parts.store.read, table.id, branch)) === undefined) await catchUp(parts, table, branch);
  await requireBranch(parts, table, branch);
}

/** Reports whether a branch has a version, possibly of a writer outside the catalog. */
export async function isWritten(parts: CommitParts, table: TableRecord, branch: string): Promise<boolean> {
  const latest = await latestVersion(parts.store.read, table.id, branch);
  return latest !== undefined || (await catchUp(parts, table, branch)) !== undefined;
}

/**
 * Reads records and finishes the unfinished ones, so that a reader never sees a version in doubt. Excludes withdrawn
 * records.
 *
 * @throws CatalogError ServiceUnavailable if a version cannot be finished now.
 */
async function readFinished(
  parts: CommitParts,
  location: string,
  read: () => Promise<VersionRecord[]>,
): Promise<VersionRecord[]> {
  const records = await read();
  if (records.every((record) => record.finished)) return records;
  const finished = await Promise.all(records.map((record) => parts.finishing.finish({ location, record })));
  // After a withdrawal, the previous record is the latest.
  return finished.includes(undefined)
    ? readFinished(parts, location, read)
    : finished.filter((record) => record !== undefined);
}

interface VersionPageRequest extends PageRequest {
  readonly descending?: boolean | undefined;
}

/**
 * Reads a page of the records of a branch's versions, including those of writers outside the catalog and without those
 * that clients cleaned up.
 */
export async function readVersionRecords(
  parts: CommitParts,
  table: TableRecord,
  branch: string,
  request: VersionPageRequest,
): Promise<{ readonly items: readonly VersionRecord[]; readonly page_token?: string }> {
  if (!request.page_token) await catchUp(parts, table, branch);
  const descending = request.descending ?? false;
  const readOnce = () =>
    readPage(
      { name: `versions ${branch} ${descending ? "descending" : "ascending"}`, key: z.int() },
      request,
      (after, limit) => {
        const read = () => listVersions(parts.store.read, table.id, branch, { after, limit, descending });
        return readFinished(parts, table.location, read);
      },
      (record) => record.version,
    );
  const page = await readOnce();
  return (await forgetCleanedUp(parts, table, branch, page.items)) ? readOnce() : page;
}

/** Reads a page of the versions of a branch, including those of writers outside the catalog. */
export async function readVersions(
  parts: CommitParts,
  table: TableRecord,
  branch: string,
  request: VersionPageRequest,
): Promise<{ readonly versions: TableVersion[]; readonly page_token?: string }> {
  const { items, ...page } = await readVersionRecords(parts, table, branch, request);
  return { versions: items.map((record) => toTableVersion(table.location, record)), ...page };
}

/**
 * Reads a placed version of a branch.
 *
 * @param version The number of the version; the latest if undefined.
 * @throws CatalogError TableVersionNotFound, ServiceUnavailable
 */
export async function requireVersion(
  parts: CommitParts,
  table: TableRecord,
  branch: string,
  version: number | undefined,
): Promise<VersionRecord> {
  const read = async () => {
    const record = await findVersion(parts.store.read, table.id, branch, version ?? 0);
    return record === undefined || record.held ? [] : [record];
  };
  const find = async () => (await readFinished(parts, table.location, read))[0];
  let found = version === undefined ? await catchUp(parts, table, branch) : await find();
  if (found === undefined && version !== undefined) {
    // A record may have been withdrawn because a writer outside the catalog owns the version.
    await catchUp(parts, table, branch);
    found = await find();
  }
  if (found !== undefined) return found;
  throw new CatalogError(
    "TableVersionNotFound",
    `table ${formatIdentifier(table.identifier)} has no version${version === undefined ? "" : ` ${version}`} on branch ${branch}`,
  );
}

/**
 * Reads the manifest of a placed version.
 *
 * @throws CatalogError ConcurrentModification, because a staged manifest may be placed at any time; InvalidTableState if
 * the manifest is larger than `bytesMax`.
 */
export async function readManifest(
  { storage }: Pick<CommitParts, "storage">,
  { location }: Pick<TableRecord, "location">,
  record: VersionRecord,
  bytesMax = manifestBytesMax,
): Promise<Uint8Array> {
  const { manifest_path: path } = toTableVersion(location, record);
  const read = await (await storage.at(parseLocation(location))).read(path, bytesMax);
  if (read === undefined) throw new CatalogError("ConcurrentModification", `no manifest exists at ${path}`);
  return read.bytes;
}

/** Converts a placed version to the protocol's `TableVersion`. */
export function toTableVersion(location: string, record: VersionRecord): TableVersion {
  return {
    version: record.version,
    manifest_path: `${versionsFolder(parseLocation(location), record.branch)}/${record.manifestName}`,
    manifest_size: record.manifestSize,
    e_tag: record.eTag,
    timestamp_millis: record.timestampMillis,
    metadata: record.metadata && { ...record.metadata },
  };
}
