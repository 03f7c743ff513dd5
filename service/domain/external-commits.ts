import { parseLocation } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import {
  deleteBranch,
  deleteVersions,
  findHighestVersion,
  insertVersion,
  latestVersion,
  type VersionRecord,
} from "../store/versions.ts";
import { prepareAudit, unknownActor } from "./audit.ts";
import { mainBranch } from "./branch.ts";
import type { Finisher } from "./finisher.ts";
import { manifestName, schemeOf, versionsFolder } from "./manifest.ts";

interface Parts {
  readonly store: Store;
  readonly storage: Storage;
  readonly finisher: Finisher;
}

/**
 * Takes up versions that a writer put into the table's folder itself, as Lance does without
 * a catalog. Geneva's backfill commits its columns this way, also when it works through a
 * catalog: without this its work would be invisible, and the next commit would bury it.
 *
 * Only the version after the latest is looked for, and only a manifest that is not older
 * than the latest one is taken for it: an older one is left from records that were deleted.
 */
export async function adoptExternalCommits(parts: Parts, table: TableRecord, branch: string): Promise<void> {
  const { store, storage } = parts;
  const location = parseLocation(table.location);
  const folder = versionsFolder(location, branch);
  const objects = await storage.at(location);
  for (;;) {
    const latest = await latestInPlace(parts, table, branch);
    if (latest === undefined) return;
    const highest = await findHighestVersion(store.read, table.id, branch);
    if (highest !== latest.version) return;

    const version = latest.version + 1;
    const name = manifestName(version, schemeOf(latest.manifestName));
    const next = await objects.find(`${folder}/${name}`);
    if (next === undefined) return;
    const present = await objects.find(`${folder}/${latest.manifestName}`);
    if (present === undefined || next.modifiedAtMillis < present.modifiedAtMillis) return;

    const properties = { branch, version: String(version) };
    const transaction = prepareAudit({ ...byItself("AdoptTableVersion", table), properties });
    await store.write(async (session) => {
      if ((await findHighestVersion(session, table.id, branch)) !== latest.version) return;
      await insertVersion(session, {
        tableId: table.id,
        branch,
        version,
        manifestName: name,
        committedName: name,
        finished: true,
        manifestSize: undefined,
        eTag: undefined,
        metadata: undefined,
        timestampMillis: Math.round(next.modifiedAtMillis),
        transactionId: transaction.id,
      });
      await transaction.record(session);
    });
  }
}

/**
 * Forgets the records of a branch that a client deleted: Lance's clients delete a branch's
 * folder and do not tell the catalog, and make a branch of the same name again later. It is
 * called for a commit whose own manifest was found, so the store can be read, and looks only
 * when that commit would be refused.
 */
export async function forgetDeletedBranch(
  parts: Parts,
  table: TableRecord,
  branch: string,
  requestedVersion: number,
): Promise<void> {
  if (branch === mainBranch) return;
  const { store, storage } = parts;
  const latest = await latestInPlace(parts, table, branch);
  if (latest === undefined || requestedVersion === latest.version + 1) return;
  const location = parseLocation(table.location);
  const objects = await storage.at(location);
  if ((await objects.find(`${versionsFolder(location, branch)}/${latest.manifestName}`)) !== undefined) return;

  await store.write(async (session) => {
    const still = await latestVersion(session, table.id, branch);
    if (still?.transactionId !== latest.transactionId) return;
    await deleteVersions(session, table.id, branch, { start: 0, end: Number.MAX_SAFE_INTEGER });
    await deleteBranch(session, table.id, branch);
    await prepareAudit({ ...byItself("ForgetTableBranch", table), properties: { branch } }).record(session);
  });
}

/** The latest version of a branch; undefined when there is none, or its manifest cannot be given its final name now. */
async function latestInPlace(
  { store, finisher }: Parts,
  table: TableRecord,
  branch: string,
): Promise<VersionRecord | undefined> {
  for (;;) {
    const latest = await latestVersion(store.read, table.id, branch);
    if (latest === undefined) return undefined;
    const finished = await finisher.finishVersion(table.location, latest);
    // A record that was withdrawn leaves room for the one before it.
    if (finished !== undefined) return finished.finished ? finished : undefined;
  }
}

/** What the catalog found out without being told. */
function byItself(operationId: string, table: TableRecord) {
  return { contract: { operationId }, caller: unknownActor, objects: [table.identifier] };
}
