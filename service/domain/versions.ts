import { CatalogError, formatIdentifier, type TableVersion } from "@tiltyard/protocol";
import { z } from "zod";
import { parseLocation } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import type { Session, Store } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import {
  findHighestVersion,
  findVersion,
  insertVersion,
  latestVersion,
  listVersions,
  type VersionRecord,
} from "../store/versions.ts";
import { branchOf } from "./branch.ts";
import { adoptExternalCommits, forgetDeletedBranch } from "./external-commits.ts";
import type { Finisher } from "./finisher.ts";
import { type ManifestNames, type NamingScheme, readManifestPath, versionsFolder } from "./manifest.ts";
import { readPage } from "./page.ts";

/**
 * How many versions of one batch are prepared or finished at once. More would keep the requests of
 * others from the connections to the database, and all would be begun although the first is refused.
 */
export const versionsAtOnce = 8;

/** What a client asks to commit; the fields of the protocol's CreateTableVersion. */
export interface VersionRequest {
  readonly version: number;
  readonly branch?: string | undefined;
  readonly manifest_path: string;
  readonly manifest_size?: number | undefined;
  readonly e_tag?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly naming_scheme?: NamingScheme | undefined;
}

/** A commit whose request was checked and whose manifest is in place. */
export interface PreparedVersion extends ManifestNames {
  /** Where the table lives; the table itself may be declared in the same batch. */
  readonly location: string;
  readonly branch: string;
  readonly request: VersionRequest;
}

/**
 * Checks a request to commit before its transaction begins: its path, and that the staged
 * manifest is there and will survive a crash.
 *
 * @param table Its location alone for a table that the same batch declares.
 * @throws CatalogError InvalidInput
 */
export async function prepareVersion(
  parts: { readonly store: Store; readonly storage: Storage; readonly finisher: Finisher },
  table: TableRecord | { readonly location: string },
  request: VersionRequest,
): Promise<PreparedVersion> {
  const { store, storage } = parts;
  const branch = branchOf(request);
  const location = parseLocation(table.location);
  const names = readManifestPath(
    request.manifest_path,
    { location, branch, version: request.version },
    request.naming_scheme,
  );
  const prepared = { ...names, location: table.location, branch, request };

  if ("id" in table) {
    const present = await findVersion(store.read, table.id, branch, request.version);
    // The manifest of a commit that is repeated is no longer where it was staged.
    if (present !== undefined && isManifestOf(present, prepared)) return prepared;
  }

  const objects = await storage.at(location);
  const [isThere] = await Promise.all([
    objects.persist(`${versionsFolder(location, branch)}/${names.committedName}`),
    "id" in table ? adoptExternalCommits(parts, table, branch) : undefined,
  ]);
  if (!isThere) throw new CatalogError("InvalidInput", `manifest_path: there is no object at ${request.manifest_path}`);
  if ("id" in table) await forgetDeletedBranch(parts, table, branch, request.version);
  return prepared;
}

function isManifestOf(record: VersionRecord, { committedName }: ManifestNames): boolean {
  return [record.committedName, record.manifestName].includes(committedName);
}

/**
 * Inserts the record of a commit: when its transaction is durable, the version exists.
 * The first record of a branch may have any number, after that only the next one is taken,
 * counted from the highest that ever was: a stale writer must not make a version again
 * that was cleaned up. Committing the same manifest again changes nothing.
 *
 * @returns The record that is there now, which an earlier transaction may have made.
 * @throws CatalogError ConcurrentModification
 */
export async function insertPrepared(
  session: Session,
  table: TableRecord,
  prepared: PreparedVersion,
  transactionId: string,
): Promise<VersionRecord> {
  const { branch, request } = prepared;
  const where = `table ${formatIdentifier(table.identifier)}, branch ${branch}`;
  if (table.location !== prepared.location)
    throw new CatalogError("ConcurrentModification", `${where}: the table was replaced meanwhile`);

  const present = await findVersion(session, table.id, branch, request.version);
  if (present !== undefined) {
    if (isManifestOf(present, prepared)) return present;
    throw new CatalogError("ConcurrentModification", `${where}: version ${request.version} exists already`);
  }
  const highest = await findHighestVersion(session, table.id, branch);
  if (highest !== undefined && request.version !== highest + 1)
    throw new CatalogError(
      "ConcurrentModification",
      `${where}: requested version ${request.version}, expected ${highest + 1}`,
    );

  const record: VersionRecord = {
    tableId: table.id,
    branch,
    version: request.version,
    manifestName: prepared.manifestName,
    committedName: prepared.committedName,
    finished: prepared.manifestName === prepared.committedName,
    manifestSize: request.manifest_size,
    eTag: request.e_tag,
    metadata: request.metadata,
    timestampMillis: Date.now(),
    transactionId,
  };
  await insertVersion(session, record);
  return record;
}

/**
 * Reads records and finishes those that still wait for it, so that a client gets paths
 * that stay. A record that turns out to be none is not among them.
 */
export async function readFinished(
  { finisher }: { readonly finisher: Finisher },
  location: string,
  read: () => Promise<VersionRecord[]>,
): Promise<VersionRecord[]> {
  const records = await read();
  if (records.every((record) => record.finished)) return records;
  const finished = await Promise.all(records.map((record) => finisher.finishVersion(location, record)));
  // A withdrawn record leaves room for the one before it.
  return finished.includes(undefined) ? read() : finished.filter((record) => record !== undefined);
}

/** One page of the versions of a branch, those included that a writer committed without the catalog. */
export async function readVersions(
  catalog: { readonly store: Store; readonly storage: Storage; readonly finisher: Finisher },
  table: TableRecord,
  branch: string,
  request: {
    readonly page_token?: string | undefined;
    readonly limit?: number | undefined;
    readonly descending?: boolean | undefined;
  },
): Promise<{ readonly versions: TableVersion[]; readonly page_token?: string }> {
  if (!request.page_token) await adoptExternalCommits(catalog, table, branch);
  const descending = request.descending ?? false;
  const { items, ...page } = await readPage(
    { name: `versions ${branch} ${descending ? "descending" : "ascending"}`, key: z.int() },
    request,
    (after, limit) => {
      const read = () => listVersions(catalog.store.read, table.id, branch, { after, limit, descending });
      return readFinished(catalog, table.location, read);
    },
    (record) => record.version,
  );
  return { versions: items.map((record) => toTableVersion(table.location, record)), ...page };
}

/**
 * A version of a branch, finished where that can be done.
 *
 * @param version The latest when undefined.
 * @throws CatalogError TableVersionNotFound
 */
export async function requireVersion(
  catalog: { readonly store: Store; readonly storage: Storage; readonly finisher: Finisher },
  table: TableRecord,
  branch: string,
  version: number | undefined,
): Promise<VersionRecord> {
  const { read: session } = catalog.store;
  const read = async () => {
    const record =
      version === undefined
        ? await latestVersion(session, table.id, branch)
        : await findVersion(session, table.id, branch, version);
    return record === undefined ? [] : [record];
  };
  const find = async () => (await readFinished(catalog, table.location, read))[0];
  let found = version === undefined ? undefined : await find();
  if (found === undefined) {
    // A record may just have been withdrawn, because the version is that of such a writer.
    await adoptExternalCommits(catalog, table, branch);
    found = await find();
  }
  if (found !== undefined) return found;
  throw new CatalogError(
    "TableVersionNotFound",
    `table ${formatIdentifier(table.identifier)} has no version${version === undefined ? "" : ` ${version}`} on branch ${branch}`,
  );
}

/**
 * Finishes a version that was just committed, for the answer to the client that committed it.
 *
 * @throws CatalogError ConcurrentModification when its name was taken or its manifest was gone.
 */
export async function finishCommit(
  { finisher }: { readonly finisher: Finisher },
  location: string,
  record: VersionRecord,
): Promise<VersionRecord> {
  const finished = await finisher.finishVersion(location, record);
  if (finished !== undefined) return finished;
  throw new CatalogError(
    "ConcurrentModification",
    `version ${record.version} on branch ${record.branch}: the manifest was deleted or its name was taken meanwhile`,
  );
}

/** Writes a record as the protocol's TableVersion. A manifest that could not be finished is read where it is staged. */
export function toTableVersion(location: string, record: VersionRecord): TableVersion {
  const name = record.finished ? record.manifestName : record.committedName;
  return {
    version: record.version,
    manifest_path: `${versionsFolder(parseLocation(location), record.branch)}/${name}`,
    ...(record.manifestSize !== undefined && { manifest_size: record.manifestSize }),
    ...(record.eTag !== undefined && { e_tag: record.eTag }),
    timestamp_millis: record.timestampMillis,
    ...(record.metadata !== undefined && { metadata: { ...record.metadata } }),
  };
}
