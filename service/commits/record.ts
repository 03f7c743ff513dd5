import { CatalogError, formatIdentifier } from "@tiltyard/protocol";
import { mainBranch } from "../domain/branch.ts";
import { automationOf } from "../domain/policy.ts";
import { findBranch } from "../store/branches.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { noteTask } from "../store/tasks.ts";
import {
  findVersion,
  insertVersion,
  latestVersion,
  listLeftOverVersions,
  type VersionRecord,
} from "../store/versions.ts";
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
  if (table.location !== prepared.location) throw conflict("the table was replaced concurrently");

  const now = await findBranch(session, table.id, branch);
  const highest = now?.highestVersion;
  const mayBePresent = highest !== undefined && version <= highest;
  const present = mayBePresent ? await findVersion(session, table.id, branch, version) : undefined;
  if (present?.held)
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
    const previous = highest === undefined ? undefined : await findVersion(session, table.id, branch, highest);
    const isOfBatch = previous?.transactionId === transactionId;
    if (!isOfBatch && (previous !== undefined || !(await isStillLatest(session, table.id, branch, base))))
      throw conflict("the branch was changed concurrently");
  }

  const record: VersionRecord = {
    tableId: table.id,
    branch,
    generation,
    version,
    manifestName: prepared.manifestName,
    committedName: prepared.committedName,
    identity: prepared.identity,
    finished: prepared.manifestName === prepared.committedName,
    held: held ? 1 : 0,
    manifestSize: request.manifest_size,
    eTag: request.e_tag,
    metadata: request.metadata,
    timestampMillis: Date.now(),
    transactionId,
  };
  await insertVersion(session, record);
  if (table.isAutomated && branch === mainBranch) await noteTask(session, automationOf(table.id));
  return record;
}

/** Reports whether a version is the latest one, because the records above it were deleted. */
async function isStillLatest(session: Session, tableId: number, branch: string, base: Base): Promise<boolean> {
  const latest = await latestVersion(session, tableId, branch);
  return latest?.generation === base.generation && latest.version === base.highestVersion;
}

/**
 * Reports whether an earlier generation of the branch had the version with the manifest of a request. Each generation
 * reuses final names, so the identity of the content distinguishes manifests with one.
 */
async function wasDeleted(
  session: Session,
  of: { readonly tableId: number; readonly branch: string; readonly generation: number },
  { committedName, manifestName, identity, request: { version } }: PreparedVersion,
): Promise<boolean> {
  const before = await listLeftOverVersions(session, of, version, version);
  if (committedName !== manifestName) return before.some((record) => record.committedName === committedName);
  return identity !== undefined && before.some((record) => record.identity === identity);
}
