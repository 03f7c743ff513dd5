import { recordAudit } from "../domain/transaction.ts";
import { findBranch } from "../store/branches.ts";
import { deleteVersions, latestVersion, listVersions, type Range, type VersionRecord } from "../store/versions.ts";
import type { TableBranch } from "./adopt.ts";
import type { CommitDeps } from "./deps.ts";
import { filesOf, listManifests } from "./discover.ts";
import { byItself } from "./record-adoption.ts";

/** The number of old versions whose manifests one list checks first, because a clean-up deletes the oldest versions. */
const checkedFirst = 16;
/** The number of versions up to which the folder is listed even if these exist, because a clean-up keeps tagged ones. */
const listedAtMost = 10_000;
const forgottenAtOnce = 500;

/**
 * Deletes the records of versions whose manifests a client has deleted. Lance's clients clean versions up without the
 * catalog. The latest version always remains.
 *
 * @param listed The records to check. The folder is listed if one of the oldest manifests is missing, or if others follow
 * these and the branch is not too long.
 * @returns Whether a record was deleted.
 */
export async function forgetCleanedUp(deps: CommitDeps, at: TableBranch, listed: readonly VersionRecord[]) {
  const { store, storage } = deps;
  const latest = await latestVersion(store.read, at);
  if (latest === undefined) return false;
  const isOld = (record: VersionRecord) => record.state === "finished" && record.version < latest.version;
  const oldest = listed.filter(isOld).sort((a, b) => a.version - b.version);
  if (oldest.length === 0) return false;
  const files = await filesOf(storage, at);
  const checked = oldest.slice(0, checkedFirst);
  const found = await Promise.all(checked.map((each) => files.objects.find(`${files.folder}/${each.manifestName}`)));
  const areAllChecked = oldest.length === checked.length || latest.version - (oldest[0]?.version ?? 0) > listedAtMost;
  if (areAllChecked && found.every((each) => each !== undefined)) return false;

  const names = new Set((await listManifests(files)).map(({ name }) => name));
  // Without the latest manifest, the folder was moved or is not mounted.
  if (!names.has(latest.manifestName) || oldest.every(({ manifestName }) => names.has(manifestName))) return false;
  let hasForgotten = false;
  for (let after: number | undefined; ; ) {
    const page = { after, limit: forgottenAtOnce, descending: false };
    const records = await listVersions(store.read, at, page);
    after = records.at(-1)?.version;
    if (after === undefined) return hasForgotten;
    const missing = records.filter((record) => isOld(record) && !names.has(record.manifestName));
    if (missing.length > 0 && (await forget(deps, at, latest, missing))) hasForgotten = true;
  }
}

/** Deletes records unless the branch was emptied meanwhile. */
async function forget(
  { store }: CommitDeps,
  at: TableBranch,
  { branch, generation }: VersionRecord,
  missing: readonly VersionRecord[],
): Promise<boolean> {
  return store.write(async (session) => {
    if ((await findBranch(session, at))?.generation !== generation) return false;
    let deleted = 0;
    for (const range of rangesOf(missing)) deleted += await deleteVersions(session, at, range);
    if (deleted === 0) return false;
    const [first, last] = [missing[0]?.version, missing.at(-1)?.version];
    const properties = { branch, version: String(first), ...(last !== first && { last_version: String(last) }) };
    await recordAudit(session, { ...byItself("ForgetTableVersion", at.table), properties });
    return true;
  });
}

function rangesOf(records: readonly VersionRecord[]): readonly Range[] {
  const ranges: { start: number; end: number }[] = [];
  for (const { version } of records) {
    const last = ranges.at(-1);
    if (last?.end === version) last.end += 1;
    else ranges.push({ start: version, end: version + 1 });
  }
  return ranges;
}
