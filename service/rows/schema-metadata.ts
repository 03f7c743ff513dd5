import { CatalogError } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { openBranch, readManifest, requireVersion } from "../commits/read.ts";
import { type BranchChange, createCommits } from "../commits/series.ts";
import { replaceSchemaMetadata } from "../lance/manifest-writer.ts";
import { branchFolder, manifestName, schemeOf } from "../lance/version-names.ts";
import { findBranch } from "../store/branches.ts";
import { isConflict } from "./errors.ts";

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
  change: BranchChange,
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
  change: BranchChange,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  const at = await openBranch(parts, change.request);
  const { table, branch, folder, objects } = at;
  const latest = await requireVersion(parts, at, undefined);

  const uuid = crypto.randomUUID();
  // The records above the latest version may have been deleted, and their numbers are not reused.
  const { highestVersion = latest.version } = (await findBranch(parts.store.read, at)) ?? {};
  const version = highestVersion + 1;
  const replaced = { version, timestampMillis: Date.now(), uuid, metadata };
  const made = await readManifest(parts, table, latest, (manifest) => replaceSchemaMetadata(manifest, replaced));
  const naming_scheme = schemeOf(latest.manifestName);
  const transactionKey = `${branchFolder(table.location, branch)}/_transactions/${made.transactionFile}`;
  const manifest_path = `${folder}/${manifestName(version, naming_scheme)}-${uuid}`;
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
    const isRefused = isConflict(error) || (error instanceof CatalogError && error.kind === "PermissionDenied");
    if (isRefused) for (const key of [manifest_path, transactionKey]) await objects.delete(key);
    throw error;
  }
}
