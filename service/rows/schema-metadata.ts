import { formatIdentifier, hasKind, requireClient } from "@tiltyard/protocol";
import pRetry, { type RetryContext } from "p-retry";
import type { CommitDeps } from "../commits/deps.ts";
import { openBranch, readManifest, requireVersion } from "../commits/read.ts";
import { type BranchChange, createCommits } from "../commits/series.ts";
import { Manifest } from "../lance/manifest.ts";
import { replaceSchemaMetadata } from "../lance/manifest-writer.ts";
import { metadataLimitAfter, requireMetadataWithin } from "../lance/metadata-limit.ts";
import { branchFolder, manifestName, schemeOf } from "../lance/version-names.ts";
import { findBranch } from "../store/branches.ts";

/** The maximum size of a manifest that is changed at the same time as others, because a change has several copies of it. */
const sharedBytesMax = 1024 * 1024;
/** The maximum number of attempts after conflicts, which equals Lance's. */
const attemptsMax = 20;

/**
 * Commits a version with replaced metadata of its schema and the rest of the latest version. It includes concurrent
 * commits, because a retry starts from their version.
 *
 * @throws CatalogError TableNotFound, TableBranchNotFound, TableVersionNotFound, Unsupported; InvalidInput for more
 * metadata than allowed; ConcurrentModification after too many conflicts.
 */
export async function commitSchemaMetadata(
  deps: CommitDeps,
  change: BranchChange,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  const attempt = () => {
    requireClient(change.caller.signal);
    return tryToCommit(deps, change, metadata);
  };
  const shouldRetry = ({ error }: RetryContext) => hasKind(error, "ConcurrentModification");
  const commit = () => pRetry(attempt, { retries: attemptsMax - 1, minTimeout: 0, shouldRetry });
  return afterOthers(formatIdentifier(change.request.id), commit);
}

const lastChanges = new Map<string, Promise<unknown>>();

/** Runs a change of a table after the other ones of this process, with which it would conflict. */
async function afterOthers(table: string, change: () => Promise<void>): Promise<void> {
  const result = (lastChanges.get(table) ?? Promise.resolve()).then(change);
  const ended = result.catch(() => undefined);
  lastChanges.set(table, ended);
  try {
    await result;
  } finally {
    if (lastChanges.get(table) === ended) lastChanges.delete(table);
  }
}

async function tryToCommit(deps: CommitDeps, change: BranchChange, metadata: Readonly<Record<string, string>>) {
  const at = await openBranch(deps, change.request);
  const { table, branch, folder, objects } = at;
  const latest = await requireVersion(deps, at, undefined);

  const uuid = crypto.randomUUID();
  // The records above the latest version may have been deleted, and their numbers are not reused.
  const { highestVersion = latest.version } = (await findBranch(deps.store.read, at)) ?? {};
  const version = highestVersion + 1;
  const replaced = { version, timestampMillis: Date.now(), uuid, metadata };
  const naming_scheme = schemeOf(latest.manifestName);
  const manifest_path = `${folder}/${manifestName(version, naming_scheme)}-${uuid}`;
  const write = async (manifest: Manifest) => {
    const { file, transaction, transactionFile } = replaceSchemaMetadata(manifest.file, replaced);
    requireMetadataWithin(await Manifest.read(file), metadataLimitAfter(manifest));
    const transactionKey = `${branchFolder(table.location, branch)}/_transactions/${transactionFile}`;
    await objects.create(transactionKey, transaction);
    await objects.create(manifest_path, file);
    return { transactionKey, manifest_size: file.length };
  };
  const { transactionKey, manifest_size } = await readManifest(deps, table, latest, write, { sharedBytesMax });
  try {
    await createCommits(deps, change, table, latest).commit({
      version,
      branch,
      manifest_path,
      manifest_size,
      naming_scheme,
    });
  } catch (error) {
    // After any other failure, the version may exist and need both objects.
    if (hasKind(error, "ConcurrentModification", "PermissionDenied"))
      for (const key of [manifest_path, transactionKey]) await objects.delete(key);
    throw error;
  }
}
