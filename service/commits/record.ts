import { CatalogError, formatIdentifier, mainBranch } from "@tiltyard/protocol";
import { automationOf } from "../domain/policy.ts";
import { type BranchKey, findBranch } from "../store/branches.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { noteTask } from "../store/tasks.ts";
import type { VersionRecord } from "../store/versions.ts";
import * as versions from "../store/versions.ts";
import { define } from "../views/definition.ts";
import { type Base, isManifestOf, type PreparedVersion } from "./prepare.ts";

/**
 * Inserts the record of a commit (step 2). Once the database transaction is durable, no other commit can have this
 * number. The first record of a generation may have any number. After that, only the successor of the highest number
 * ever recorded is accepted, because a stale writer must not re-create a version that was cleaned up. A retry with the
 * same manifest is idempotent and does not restore records that were deleted since.
 *
 * @param held Hides the version until `publishVersions`.
 * @returns The record, which an earlier transaction may have inserted.
 * @throws CatalogError ConcurrentModification
 */
export async function recordVersion(
  session: Session,
  table: TableRecord,
  prepared: PreparedVersion,
  transactionId: string,
  held = false,
): Promise<VersionRecord> {
  const { branch, request, base } = prepared;
  const { version } = request;
  const conflict = (problem: string) =>
    new CatalogError(
      "ConcurrentModification",
      `table ${formatIdentifier(table.identifier)}, branch ${branch}: ${problem}`,
    );
  if (table.location.uri !== prepared.location.uri) throw conflict("the table was replaced concurrently");

  const at = { table, branch };
  const now = await findBranch(session, at);
  const highest = now?.highestVersion;
  const mayBePresent = highest !== undefined && version <= highest;
  const present = mayBePresent ? await versions.findVersion(session, at, version) : undefined;
  if (present !== undefined && versions.isHidden(present))
    throw conflict(
      present.transactionId === transactionId
        ? `the batch has version ${version} twice`
        : `version ${version} is being committed by another request`,
    );
  if (present !== undefined && isManifestOf(present, prepared)) return present;
  if (present !== undefined) throw conflict(`version ${version} already exists`);

  if (highest !== undefined && version !== highest + 1)
    throw conflict(`requested version ${version}, expected ${highest + 1}`);
  const { generation = 1, leftOverVersion = -1 } = now ?? {};
  if (version <= leftOverVersion && (await wasDeleted(session, { tableId: table.id, branch, generation }, prepared)))
    throw conflict(`version ${version} was committed with this manifest and deleted since`);
  const isUnchanged = base === undefined || (generation === base.generation && highest === base.highestVersion);
  if (!isUnchanged) {
    const previous = highest === undefined ? undefined : await versions.findVersion(session, at, highest);
    const isOfBatch = previous?.transactionId === transactionId;
    if (!isOfBatch && (previous !== undefined || !(await isStillLatest(session, at, base))))
      throw conflict("the branch was changed concurrently");
  }

  const { manifestName, committedName, identity, summary } = prepared;
  // The record that a retry found is withdrawn since, and its manifest was not found.
  if (identity === undefined) throw conflict(`the commit of version ${version} was withdrawn concurrently`);
  const record: VersionRecord = {
    tableId: table.id,
    branch,
    generation,
    version,
    manifestName,
    committedName,
    identity,
    state: held ? "held" : manifestName === committedName ? "finished" : "recorded",
    manifestSize: request.manifest_size,
    eTag: request.e_tag,
    metadata: request.metadata,
    ...summary,
    timestampMillis: session.time(),
    transactionId,
  };
  await versions.insertVersion(session, record);
  if (!held) await define(session, table.id, prepared.view);
  if (table.isAutomated && branch === mainBranch) await noteTask(session, automationOf(table.id));
  return record;
}

/** Reports whether a version is the latest one, because the records above it were deleted. */
async function isStillLatest(session: Session, at: BranchKey, base: Base): Promise<boolean> {
  const latest = await versions.latestVersion(session, at);
  return latest?.generation === base.generation && latest.version === base.highestVersion;
}

/** Reports whether an earlier generation had the version with this manifest, by its staged name or content. */
async function wasDeleted(
  session: Session,
  of: { readonly tableId: number; readonly branch: string; readonly generation: number },
  { committedName, manifestName, identity, request: { version } }: PreparedVersion,
): Promise<boolean> {
  const before = await versions.listLeftOverVersions(session, of, version, version);
  if (committedName !== manifestName) return before.some((record) => record.committedName === committedName);
  return identity !== undefined && before.some((record) => record.identity === identity);
}
