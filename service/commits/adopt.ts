import type { Identifier } from "@tiltyard/protocol";
import { z } from "zod";
import { prepareAudit, unknownCaller } from "../domain/audit.ts";
import { automationOf } from "../domain/automation.ts";
import { mainBranch } from "../domain/branch.ts";
import { tableNotFound } from "../domain/require.ts";
import { type Location, parseLocation } from "../storage/location.ts";
import type { ObjectStore, StoredObject } from "../storage/object-store.ts";
import type { Storage } from "../storage/storage.ts";
import { type BranchRecord, emptyBranch, findBranch, raiseBranch } from "../store/branches.ts";
import type { Session, Store } from "../store/store.ts";
import { findTableById, type TableRecord } from "../store/tables.ts";
import { deleteTask, holdTask, insertTask, noteTask } from "../store/tasks.ts";
import {
  findVersion,
  insertVersions,
  latestVersion,
  listLeftOverVersions,
  listVersions,
  type VersionRecord,
} from "../store/versions.ts";
import { manifestName, schemeOf, versionOfManifest, versionsFolder } from "./manifest.ts";
import type { CommitParts } from "./parts.ts";
import { hasContentOf } from "./place.ts";
import { rollBack } from "./withdraw.ts";

/** How many records one database transaction inserts. */
const adoptedAtOnce = 500;
/** How many of them one request waits for. */
const adoptedPerRequest = 5_000;

/** A manifest that has a final name in a table's folder. */
export interface FoundManifest {
  readonly version: number;
  readonly name: string;
  readonly object: StoredObject;
}

/**
 * Adopts versions that a writer placed in the table's folder itself, as Lance does without a catalog. Geneva's
 * backfill commits its columns so, Spark and lance-ray whole tables: without adoption they are invisible, and a commit
 * through the catalog conflicts with them.
 *
 * A branch without a record adopts all manifests that are there, one with records those that follow the latest. A
 * manifest that is left over from an earlier generation of the branch is never adopted.
 *
 * @returns The latest version of the branch, in its place; undefined when it has none.
 * @throws CatalogError ServiceUnavailable, TableNotFound
 */
export async function catchUp(
  parts: CommitParts,
  table: TableRecord,
  branch: string,
): Promise<VersionRecord | undefined> {
  const { store, storage } = parts;
  for (;;) {
    const latest = await latestInPlace(parts, table, branch);
    const state = await findBranch(store.read, table.id, branch);
    const highest = state?.highestVersion;
    if (highest !== undefined && highest !== latest?.version) {
      const above = await findVersion(store.read, table.id, branch, highest);
      if (above?.condemned) {
        await rollBack(parts, above.transactionId);
        continue;
      }
      // A transaction of several versions is committing it.
      if (above !== undefined) return latest;
    }
    const place = await placeOf(storage, table, branch, state);
    if (highest === undefined) {
      const found = await withoutLeftOvers(store.read, place, await listManifests(place));
      if (found.length === 0) return undefined;
      await adoptBranch(parts, place, found, adoptedPerRequest);
    } else {
      const found = await findNext(place, highest, latest);
      const news = untilGap(highest, await withoutLeftOvers(store.read, place, found)).slice(0, adoptedPerRequest);
      if (news.length === 0) return latest;
      await adoptNext(store, place, news);
      if (news.length === adoptedPerRequest) return latestInPlace(parts, table, branch);
    }
  }
}

/** The task that adopts the older versions of a branch. */
export function adoptionOf(tableId: number, branch: string) {
  return { kind: "adopt", subject: JSON.stringify([tableId, branch]) } as const;
}

/** Adopts the versions of a branch that `adoptBranch` left to a task. */
export async function adoptRest(parts: CommitParts, subject: string): Promise<void> {
  const [id, branch] = z.tuple([z.int(), z.string()]).parse(JSON.parse(subject));
  const table = await findTableById(parts.store.read, id);
  if (table === undefined) return;
  const place = await placeOf(parts.storage, table, branch, await findBranch(parts.store.read, id, branch));
  const found = await withoutLeftOvers(parts.store.read, place, await listManifests(place));
  await adoptBelow(parts.store, place, found, Number.POSITIVE_INFINITY);
}

/** Adopts all branches of a table that was just registered, as the work of that transaction. */
export async function adoptTable(
  parts: CommitParts,
  table: TableRecord,
  branches: ReadonlyMap<string, readonly FoundManifest[]>,
  transactionId: string,
): Promise<void> {
  for (const [branch, found] of branches) {
    const place = { ...(await placeOf(parts.storage, table, branch, undefined)), transactionId };
    await adoptBranch(parts, place, found, Number.POSITIVE_INFINITY);
  }
}

/** The manifests of the Lance table at a location, by branch. */
export async function listBranches(
  storage: Storage,
  location: Location,
): Promise<ReadonlyMap<string, readonly FoundManifest[]>> {
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

/** A branch: its records, and where its manifests are. */
interface Place {
  readonly table: TableRecord;
  readonly branch: string;
  readonly state: BranchRecord | undefined;
  readonly folder: string;
  readonly objects: ObjectStore;
  /** The transaction that adopts them; each adoption has one of its own when undefined. */
  readonly transactionId?: string;
}

async function placeOf(
  storage: Storage,
  table: TableRecord,
  branch: string,
  state: BranchRecord | undefined,
): Promise<Place> {
  const location = parseLocation(table.location);
  return { table, branch, state, folder: versionsFolder(location, branch), objects: await storage.at(location) };
}

/** @param before Only manifests whose names sort before this one. */
async function listManifests({ folder, objects }: Place, before?: string): Promise<FoundManifest[]> {
  const found: FoundManifest[] = [];
  for await (const object of objects.list(folder, before && `${folder}/${before}`)) {
    const name = object.key.slice(folder.length + 1);
    const version = versionOfManifest(name);
    if (version !== undefined) found.push({ version, name, object });
  }
  return found;
}

/** The manifests that follow a version. Most often there is none, or one: a folder is listed only for more. */
async function findNext(place: Place, highest: number, latest: VersionRecord | undefined): Promise<FoundManifest[]> {
  const scheme = latest === undefined ? "V2" : schemeOf(latest.manifestName);
  const look = async (version: number): Promise<FoundManifest | undefined> => {
    const name = manifestName(version, scheme);
    const object = await place.objects.find(`${place.folder}/${name}`);
    return object && { version, name, object };
  };
  const next = await look(highest + 1);
  if (next === undefined || (await look(highest + 2)) === undefined) return next === undefined ? [] : [next];
  // Names of V2 count down, so that later versions sort before earlier ones.
  return listManifests(place, scheme === "V2" ? manifestName(highest, scheme) : undefined);
}

function untilGap(highest: number, found: readonly FoundManifest[]): readonly FoundManifest[] {
  const later = found.filter(({ version }) => version > highest).sort((a, b) => a.version - b.version);
  const gap = later.findIndex(({ version }, index) => version !== highest + 1 + index);
  return gap === -1 ? later : later.slice(0, gap);
}

/**
 * Leaves out the manifests of earlier generations. What the catalog cannot tell from them is left out too: a
 * version whose record was deleted must not come back.
 */
async function withoutLeftOvers(
  session: Session,
  { table, branch, state, folder, objects }: Place,
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
    const there = { key: `${folder}/${manifest.name}`, object: manifest.object };
    let isKnown = false;
    for (const record of records)
      isKnown ||= record.identity === undefined || (await hasContentOf(objects, folder, record, there));
    if (!isKnown) later.push(manifest);
  }
  return later;
}

/** Adopts versions that follow the highest of a branch, unless others were recorded meanwhile. */
async function adoptNext(store: Store, place: Place, found: readonly FoundManifest[]): Promise<void> {
  for (let from = 0; from < found.length; from += adoptedAtOnce) {
    const part = found.slice(from, from + adoptedAtOnce);
    const highest = (part[0]?.version ?? 0) - 1;
    await store.write((session) => insertFound(session, place, part, highest));
  }
}

/**
 * Adopts a branch that has no record: its latest versions first, so that commits follow them from then on, then the
 * older ones. A task adopts those beyond `most`.
 */
async function adoptBranch(
  { store }: CommitParts,
  place: Place,
  found: readonly FoundManifest[],
  most: number,
): Promise<void> {
  const sorted = found.toSorted((a, b) => a.version - b.version);
  const latest = sorted.slice(-adoptedAtOnce);
  const isAll = latest.length === sorted.length;
  const { table, branch } = place;
  const isFirst = await store.write(async (session) => {
    if (!(await insertFound(session, place, latest, undefined, sorted[0]?.version))) return false;
    if (!isAll) await insertTask(session, adoptionOf(table.id, branch));
    return true;
  });
  if (!isFirst || isAll) return;
  const state = await findBranch(store.read, table.id, branch);
  await adoptBelow(store, { ...place, state }, sorted, most - latest.length);
}

/** Adopts versions of a branch below those that have records, the latest first. */
async function adoptBelow(store: Store, place: Place, found: readonly FoundManifest[], most: number): Promise<void> {
  const { table, branch, state } = place;
  const task = adoptionOf(table.id, branch);
  const [lowest] = await listVersions(store.read, table.id, branch, { after: undefined, limit: 1, descending: false });
  const below = found
    .filter(({ version }) => lowest === undefined || version < lowest.version)
    .sort((a, b) => b.version - a.version);
  for (let from = 0; from < below.length && from < most; from += adoptedAtOnce) {
    const part = below.slice(from, from + adoptedAtOnce);
    const isTaken = await store.write(async (session) => {
      // A deletion of the branch's versions deletes the task too: those must not come back.
      const now = await findBranch(session, table.id, branch);
      if (now === undefined || now.generation !== state?.generation || !(await holdTask(session, task))) return false;
      await insertVersions(session, recordsOf(place, now.generation, part, await recordAdoption(session, place, part)));
      if (from + adoptedAtOnce >= below.length) await deleteTask(session, task);
      return true;
    });
    if (!isTaken) return;
  }
  if (below.length === 0) await store.write((session) => deleteTask(session, task));
}

/** @returns Whether the branch was as expected, so that the records are there now. @throws CatalogError TableNotFound */
async function insertFound(
  session: Session,
  place: Place,
  found: readonly FoundManifest[],
  expectedHighest: number | undefined,
  lowest = found[0]?.version,
): Promise<boolean> {
  const highest = found.at(-1)?.version;
  if (highest === undefined || lowest === undefined) return false;
  const { table, branch, state } = place;
  await requireSameTable(session, table);
  const now = await findBranch(session, table.id, branch);
  // The rollback of a commit of several versions has removed manifests, too.
  const isAsSeen = now?.generation === state?.generation && now?.withdrawals === state?.withdrawals;
  if (!isAsSeen || now?.highestVersion !== expectedHighest) return false;
  const { generation = 1 } = now ?? {};
  await raiseBranch(session, { tableId: table.id, name: branch, generation, lowest, highest });
  await insertVersions(session, recordsOf(place, generation, found, await recordAdoption(session, place, found)));
  // Such versions may have columns that the catalog does not know.
  if (branch === mainBranch) await noteTask(session, automationOf(table.id));
  return true;
}

/** Its row goes while the folder is read when it is deregistered or purged. @throws CatalogError TableNotFound */
async function requireSameTable(session: Session, { id, identifier }: TableRecord): Promise<void> {
  if ((await findTableById(session, id)) === undefined) throw tableNotFound(identifier);
}

function recordsOf(
  { table, branch }: Place,
  generation: number,
  found: readonly FoundManifest[],
  transactionId: string,
): VersionRecord[] {
  return found.map(({ version, name, object }) => ({
    tableId: table.id,
    branch,
    generation,
    version,
    manifestName: name,
    committedName: name,
    identity: object.identity,
    finished: true,
    held: false,
    condemned: false,
    manifestSize: object.sizeBytes,
    eTag: undefined,
    metadata: undefined,
    timestampMillis: Math.round(object.modifiedAtMillis),
    transactionId,
  }));
}

/** @returns The id of the transaction. */
async function recordAdoption(
  session: Session,
  { table, branch, transactionId }: Pick<Place, "table" | "branch" | "transactionId">,
  found: readonly FoundManifest[],
): Promise<string> {
  if (transactionId !== undefined) return transactionId;
  const versions = found.map(({ version }) => version);
  const [first, last] = [Math.min(...versions), Math.max(...versions)];
  const properties = { branch, version: String(first), ...(last !== first && { last_version: String(last) }) };
  const audit = prepareAudit({ ...byItself("AdoptTableVersion", table), properties });
  await audit.record(session);
  return audit.id;
}

/**
 * Forgets the records of a branch that a client deleted: Lance's clients delete the folder of a branch without the
 * catalog, and may create a branch of that name again. It is called for a commit whose own manifest was found, so the
 * store can be read: the latest manifest of a branch is missing only when its folder was deleted.
 *
 * @param latest The latest version of the branch, as it was seen in its place.
 * @returns Whether the branch is another one now.
 */
export async function forgetDeletedBranch(
  { store, storage }: CommitParts,
  table: TableRecord,
  latest: VersionRecord,
): Promise<boolean> {
  const { branch } = latest;
  if (branch === mainBranch) return false;
  const { objects, folder } = await placeOf(storage, table, branch, undefined);
  if ((await objects.find(`${folder}/${latest.manifestName}`)) !== undefined) return false;

  await store.write(async (session) => {
    const still = await latestVersion(session, table.id, branch);
    if (still?.transactionId !== latest.transactionId) return;
    await emptyBranch(session, table.id, branch);
    await prepareAudit({ ...byItself("ForgetTableBranch", table), properties: { branch } }).record(session);
  });
  return true;
}

/** The latest version of a branch, in its place. @throws CatalogError ServiceUnavailable */
async function latestInPlace(
  { store, finishing }: CommitParts,
  { id, location }: TableRecord,
  branch: string,
): Promise<VersionRecord | undefined> {
  for (;;) {
    const record = await latestVersion(store.read, id, branch);
    if (record === undefined) return undefined;
    const finished = await finishing.finish({ location, record });
    // A record that was withdrawn leaves room for the one before it.
    if (finished !== undefined) return finished;
  }
}

/** The origin of a change that the catalog detects itself. */
function byItself(operationId: string, table: { readonly identifier: Identifier }) {
  return { contract: { operationId }, caller: unknownCaller, objects: [table.identifier] };
}
