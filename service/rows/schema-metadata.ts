import { CatalogError } from "@tiltyard/protocol";
import { branchFolder, manifestName, schemeOf, versionsFolder } from "../commits/manifest.ts";
import type { CommitParts } from "../commits/parts.ts";
import { requireBranch, requireVersion, toTableVersion } from "../commits/read.ts";
import { type Change, createCommits } from "../commits/series.ts";
import { branchOf } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import { parseLocation } from "../storage/location.ts";
import type { TableRecord } from "../store/tables.ts";
import type { VersionRecord } from "../store/versions.ts";
import { isConflict } from "./errors.ts";
import { replaceSchemaMetadata } from "./manifest-file.ts";

/** The maximum number of attempts after conflicts, which equals Lance's. */
const attemptsMax = 20;
/** The maximum size of a manifest, which contains some hundred bytes for each file of the table. */
const manifestBytesMax = 256 * 1024 * 1024;

/**
 * Commits a version with replaced metadata of its schema and the rest of the latest version. It includes concurrent
 * commits, because a retry starts from their version.
 *
 * @throws CatalogError TableNotFound, TableBranchNotFound, TableVersionNotFound, Unsupported; ConcurrentModification
 * after too many conflicts.
 */
export async function commitSchemaMetadata(
  parts: CommitParts,
  change: Change,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await tryToCommit(parts, change, metadata);
    } catch (error) {
      if (!isConflict(error) || attempt === attemptsMax) throw error;
    }
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

async function tryToCommit(
  parts: CommitParts,
  change: Change,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  const { store, storage } = parts;
  const table = await requireTable(store.read, change.request.id);
  const branch = branchOf(change.request);
  await requireBranch(parts, table, branch);
  const latest = await requireVersion(parts, table, branch, undefined);
  const location = parseLocation(table.location);
  const objects = await storage.at(location);

  const uuid = crypto.randomUUID();
  const version = latest.version + 1;
  const made = replaceSchemaMetadata(await readManifest(parts, table, latest), {
    version,
    timestampMillis: Date.now(),
    uuid,
    metadata,
  });
  const naming_scheme = schemeOf(latest.manifestName);
  const transactionKey = `${branchFolder(location, branch)}/_transactions/${made.transactionFile}`;
  const manifest_path = `${versionsFolder(location, branch)}/${manifestName(version, naming_scheme)}-${uuid}`;
  await objects.create(transactionKey, made.transaction);
  await objects.create(manifest_path, made.file);
  try {
    await createCommits(parts, change, table, latest).commit({
      version,
      branch,
      manifest_path,
      manifest_size: made.file.length,
      naming_scheme,
    });
  } catch (error) {
    // After any other failure, the version may exist and need both objects.
    if (isConflict(error)) for (const key of [manifest_path, transactionKey]) await objects.delete(key);
    throw error;
  }
}
