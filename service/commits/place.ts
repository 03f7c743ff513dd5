import { versionsFolder } from "../lance/version-names.ts";
import type { ObjectStore, StoredObject } from "../storage/object-store.ts";
import type { Session } from "../store/store.ts";
import { type LocatedVersion, listLeftOverVersions } from "../store/versions.ts";
import type { PlacedVersion, StoreDeps } from "./deps.ts";

/** The maximum number of attempts to place a manifest while other writers change its name. */
const attemptsMax = 5;

export function keysOf({ location, record }: LocatedVersion) {
  const folder = versionsFolder(location, record.branch);
  return { folder, staged: `${folder}/${record.committedName}`, final: `${folder}/${record.manifestName}` };
}

/**
 * Copies the staged manifest to its final name (step 3 of a commit) if the name is free or belongs to a leftover
 * manifest of an earlier generation of the branch. Several processes may try concurrently: each change is one
 * conditional write, and the placed manifest shows the others that it succeeded.
 *
 * @returns The placed version; undefined if the commit cannot be finished, because a writer outside the catalog owns
 * the name, or because the client received no response and deleted its staged manifest.
 * @throws CatalogError ServiceUnavailable
 */
export async function placeManifest({ store, storage }: StoreDeps, located: LocatedVersion) {
  const { location, record } = located;
  const objects = await storage.at(location);
  const { staged, final } = keysOf(located);
  const placedAs = (identity: string): PlacedVersion => ({
    location,
    record: { ...record, identity },
    hasNewIdentity: identity !== record.identity,
  });
  if (staged === final) return (await objects.find(final)) && placedAs(record.identity);
  let replaced: StoredObject | undefined;
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const { outcome, identity = record.identity } = await objects.copy(staged, final, replaced);
    if (outcome === "copied") return placedAs(identity);
    const there = await objects.find(final);
    if (there === undefined) {
      if (outcome === "missing") return undefined;
      replaced = undefined;
      continue;
    }
    // Another attempt placed the manifest and may have been interrupted after it deleted the staged one.
    if (await hasContentOf(objects, located, final, there)) return placedAs(there.identity);
    if (outcome === "missing" || !(await isLeftOver(store.read, objects, located, there))) return undefined;
    replaced = there;
  }
  return undefined;
}

/** Reports whether an object is the manifest of a record, by its identity or by the content of the staged manifest. */
export async function hasContentOf(
  objects: ObjectStore,
  located: LocatedVersion,
  key: string,
  { identity, sizeBytes }: StoredObject,
): Promise<boolean> {
  if (located.record.identity === identity) return true;
  const { staged: stagedKey } = keysOf(located);
  // A manifest that its writer placed itself has no other name.
  const staged = stagedKey === key ? undefined : await objects.find(stagedKey);
  if (staged === undefined) return false;
  if (staged.identity === identity) return true;
  if (staged.sizeBytes !== sizeBytes) return false;
  const read = [key, stagedKey].map((each) => objects.read(each, sizeBytes));
  const [one, other] = await Promise.all(read);
  return one !== undefined && other !== undefined && Buffer.compare(one.bytes, other.bytes) === 0;
}

/** Reports whether the catalog placed an object for a version that was deleted together with its whole branch. */
async function isLeftOver(session: Session, objects: ObjectStore, located: LocatedVersion, there: StoredObject) {
  const { location, record } = located;
  if (record.generation === 1) return false;
  const { final } = keysOf(located);
  for (const before of await listLeftOverVersions(session, record, record.version, record.version)) {
    const wasStaged = before.committedName !== before.manifestName;
    if (wasStaged && (await hasContentOf(objects, { location, record: before }, final, there))) return true;
  }
  return false;
}
