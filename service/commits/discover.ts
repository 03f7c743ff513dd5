import { mainBranch } from "@tiltyard/protocol";
import { manifestName, schemeOf, versionOfManifest, versionsFolder } from "../lance/version-names.ts";
import type { Location } from "../storage/location.ts";
import type { ObjectStore, StoredObject } from "../storage/object-store.ts";
import type { Storage } from "../storage/storage.ts";
import type { BranchRecord } from "../store/branches.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { listLeftOverVersions, type VersionRecord } from "../store/versions.ts";
import { hasContentOf } from "./place.ts";

export interface FoundManifest {
  readonly version: number;
  readonly name: string;
  readonly object: StoredObject;
}

export type LocatedTable = Pick<TableRecord, "id" | "identifier" | "location">;

export interface BranchFiles<Table extends Pick<LocatedTable, "id" | "location"> = LocatedTable> {
  readonly table: Table;
  readonly branch: string;
  /** The records when the folder was read; undefined without any, and if only the files matter. */
  readonly state?: BranchRecord | undefined;
  readonly folder: string;
  readonly objects: ObjectStore;
  /** The transaction that adopts the versions. Without it, each adoption has a separate transaction. */
  readonly transactionId?: string;
}

export async function filesOf<Table extends LocatedTable>(
  storage: Storage,
  { table, branch }: Pick<BranchFiles<Table>, "table" | "branch">,
  state?: BranchRecord,
): Promise<BranchFiles<Table>> {
  const { location } = table;
  return { table, branch, state, folder: versionsFolder(location, branch), objects: await storage.at(location) };
}

/** Lists the manifests of a branch. @param before Restricts the list to names that sort before this one. */
export async function listManifests({ folder, objects }: BranchFiles, before?: string): Promise<FoundManifest[]> {
  const found: FoundManifest[] = [];
  for await (const object of objects.list(folder, before && `${folder}/${before}`)) {
    const name = object.key.slice(folder.length + 1);
    const version = versionOfManifest(name);
    if (version !== undefined) found.push({ version, name, object });
  }
  return found;
}

/** Finds the manifest with the final name of a version. */
export async function findVersionFile(
  { folder, objects }: Pick<BranchFiles, "folder" | "objects">,
  version: number,
  scheme: ReturnType<typeof schemeOf>,
): Promise<FoundManifest | undefined> {
  const name = manifestName(version, scheme);
  const object = await objects.find(`${folder}/${name}`);
  return object && { version, name, object };
}

/** Finds the manifests that follow a version. Usually at most one exists, so the folder is listed only if more do. */
export async function findNext(files: BranchFiles, highest: number, latest: VersionRecord | undefined) {
  const scheme = latest === undefined ? "V2" : schemeOf(latest.manifestName);
  const next = await findVersionFile(files, highest + 1, scheme);
  if (next === undefined) return [];
  if ((await findVersionFile(files, highest + 2, scheme)) === undefined) return [next];
  // V2 names count down, so later versions sort first.
  return listManifests(files, scheme === "V2" ? manifestName(highest, scheme) : undefined);
}

/** Returns the consecutive manifests that follow a version, in order. */
export function untilGap(highest: number, found: readonly FoundManifest[]): readonly FoundManifest[] {
  const later = found.filter(({ version }) => version > highest).sort((a, b) => a.version - b.version);
  const gap = later.findIndex(({ version }, index) => version !== highest + 1 + index);
  return gap === -1 ? later : later.slice(0, gap);
}

/** Excludes manifests that may be of earlier generations: a version with a deleted record must not reappear. */
export async function withoutLeftOvers(
  session: Session,
  { table, branch, state, folder, objects }: BranchFiles<Pick<LocatedTable, "id" | "location">>,
  found: readonly FoundManifest[],
): Promise<FoundManifest[]> {
  const { generation = 1, leftOverVersion = -1 } = state ?? {};
  const later = found.filter(({ version }) => version > leftOverVersion);
  if (later.length === found.length) return later;
  const of = { tableId: table.id, branch, generation };
  const lowest = found.reduce((least, { version }) => Math.min(least, version), leftOverVersion);
  const before = Map.groupBy(await listLeftOverVersions(session, of, lowest, leftOverVersion), (each) => each.version);
  for (const manifest of found) {
    const records = before.get(manifest.version);
    if (manifest.version > leftOverVersion || records === undefined) continue;
    const key = `${folder}/${manifest.name}`;
    let isKnown = false;
    for (const record of records)
      isKnown ||= await hasContentOf(objects, { location: table.location, record }, key, manifest.object);
    if (!isKnown) later.push(manifest);
  }
  return later;
}

export async function listBranches(storage: Storage, location: Location) {
  const objects = await storage.at(location);
  const branches = new Map<string, FoundManifest[]>();
  for (const [folder, inBranch] of [
    [versionsFolder(location, mainBranch), /^()([^/]+)$/],
    [`${location.path}/tree`, /^(.+)\/_versions\/([^/]+)$/],
  ] as const)
    for await (const object of objects.list(folder)) {
      const [, path = "", name = ""] = inBranch.exec(object.key.slice(folder.length + 1)) ?? [];
      const version = versionOfManifest(name);
      if (version === undefined) continue;
      const branch = path === "" ? mainBranch : path;
      const found = branches.get(branch) ?? [];
      branches.set(branch, found);
      found.push({ version, name, object });
    }
  return branches;
}
