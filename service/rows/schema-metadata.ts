import { branchFolder, manifestName, schemeOf, versionsFolder } from "../commits/manifest.ts";
import type { CommitParts } from "../commits/parts.ts";
import { readManifest, requireBranch, requireVersion } from "../commits/read.ts";
import { type Change, createCommits } from "../commits/series.ts";
import { branchOf } from "../domain/branch.ts";
import { requireTable } from "../domain/require.ts";
import { parseLocation } from "../storage/location.ts";
import { findBranch } from "../store/branches.ts";
import { isConflict } from "./errors.ts";
import { replaceSchemaMetadata } from "./manifest-writer.ts";

/** The maximum number of attempts after conflicts, which equals Lance's. */
const attemptsMax = 20;

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
  // The records above the latest version may have been deleted, and their numbers are not reused.
  const { highestVersion = latest.version } = (await findBranch(store.read, table.id, branch)) ?? {};
  const version = highestVersion + 1;
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
