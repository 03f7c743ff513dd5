import { CatalogError } from "@tiltyard/protocol";
import type { Log } from "../log.ts";
import { insertTask } from "../store/tasks.ts";
import * as unfinished from "../store/unfinished-versions.ts";
import { findVersion, isHidden, type LocatedVersion, latestVersion, type VersionRecord } from "../store/versions.ts";
import type { Finishing, PlacedVersion, StoreDeps } from "./deps.ts";
import { keysOf, placeManifest } from "./place.ts";
import { rollBack, withdraw } from "./withdraw.ts";

/** The maximum number of placed manifests that one database transaction records. */
const noteBatch = 256;
const retryAfterMs = 1_000;
/** The maximum number of transactions that one search for forgotten versions finds. */
const forgottenBatch = 1_000;

export function createFinishing(deps: StoreDeps & { readonly log: Log }): Finishing {
  const { store, storage, log } = deps;
  /** The versions that this process is finishing. Readers of such a version wait for the same work. */
  const inProgress = new Map<string, Promise<VersionRecord | undefined>>();
  const placed: PlacedVersion[] = [];
  let noting: Promise<void> | undefined;

  async function place(located: LocatedVersion, key: string): Promise<VersionRecord | undefined> {
    try {
      const inPlace = await placeManifest(deps, located);
      if (inPlace !== undefined) {
        // Until the placement is recorded, readers find the version in `inProgress`.
        note(inPlace);
        return { ...inPlace.record, state: "finished" };
      }
      const finished = await resolveUnplaced(located);
      inProgress.delete(key);
      return finished;
    } catch (error) {
      inProgress.delete(key);
      log.warn({ err: error, ...keysOf(located) }, "a version has no final name yet");
      const { record } = located;
      // If this insertion also fails, `findForgotten` finds the version.
      await store
        .write((session) => insertTask(session, finishOf(record.transactionId), retryAfterMs))
        .catch(() => undefined);
      throw new VersionInDoubtError(record, error);
    }
  }

  /** Withdraws a version. @returns The record if the version was placed meanwhile. */
  async function resolveUnplaced(located: LocatedVersion): Promise<VersionRecord | undefined> {
    const { record } = located;
    const isWithdrawn = await withdraw(store, record);
    log.warn(
      { ...keysOf(located), isWithdrawn },
      "a commit cannot be finished: its manifest was deleted, or its name is in use",
    );
    if (isWithdrawn) return undefined;
    const at = { table: { id: record.tableId }, branch: record.branch };
    const now = await findVersion(store.read, at, record.version);
    if (now === undefined || keyOf(now) !== keyOf(record)) return undefined;
    if (now.state === "finished") return now;
    if (now.identity !== record.identity) return place({ ...located, record: now }, keyOf(record));
    const latest = await latestVersion(store.read, at);
    // A version of the same transaction may be recorded before this one is placed.
    if (latest === undefined || (latest.transactionId === record.transactionId && latest.state !== "finished"))
      throw new VersionInDoubtError(record);
    // A later commit builds on this version, so it remains, although a client has deleted its manifest since.
    await store.write((session) => unfinished.finishVersion(session, now));
    return { ...now, state: "finished" };
  }

  function note(one: PlacedVersion): void {
    placed.push(one);
    noting ??= notePlaced();
  }

  /** Records placements in groups. The versions of a group share one sync of their folder and one database transaction. */
  async function notePlaced(): Promise<void> {
    while (placed.length > 0) {
      const group = placed.splice(0, noteBatch);
      const byFolder = Map.groupBy(group, (each) => keysOf(each).folder);
      const durable = (await Promise.all([...byFolder.values()].map(makeDurable))).flat();
      const late = group.filter((each) => !durable.includes(each));
      try {
        await store.write(async (session) => {
          for (const { record } of durable) await unfinished.finishVersion(session, record);
          for (const { record } of late) await insertTask(session, finishOf(record.transactionId), retryAfterMs);
        });
      } catch (error) {
        // `findForgotten` finds these versions later.
        log.warn({ err: error, versions: group.length }, "versions that have their final names are not recorded yet");
      }
      for (const { record } of group) inProgress.delete(keyOf(record));
    }
    noting = undefined;
  }

  /** Deletes the staged names once the final ones are durable. @returns The versions of one folder that can be recorded. */
  async function makeDurable(group: readonly PlacedVersion[]): Promise<readonly PlacedVersion[]> {
    const [first] = group;
    if (first === undefined) return [];
    const { folder } = keysOf(first);
    try {
      const objects = await storage.at(first.location);
      await objects.syncFolder(folder);
      // Without the staged manifest, only the identity associates the final one with its commit.
      const renamed = group.filter(({ hasNewIdentity }) => hasNewIdentity);
      if (renamed.length > 0)
        await store.write(async (session) => {
          for (const { record } of renamed) await unfinished.identifyVersion(session, record);
        });
      const staged = group.map(keysOf).filter((keys) => keys.staged !== keys.final);
      await Promise.all(staged.map((keys) => objects.delete(keys.staged)));
      return group;
    } catch (error) {
      log.warn({ err: error, folder }, "versions have their final names, but are not durable yet");
      return [];
    }
  }

  function finish(located: LocatedVersion): Promise<VersionRecord | undefined> {
    if (located.record.state === "finished") return Promise.resolve(located.record);
    const key = keyOf(located.record);
    const work = inProgress.get(key) ?? place(located, key);
    inProgress.set(key, work);
    return work;
  }

  return {
    finish,
    note,
    finishTransaction: async (id) => {
      const left = await unfinished.listUnfinishedVersions(store.read, id);
      if (left.some(({ record }) => isHidden(record))) await rollBack(deps, id);
      else for (const located of left) await finish(located);
      while (noting !== undefined) await noting;
      if ((await unfinished.listUnfinishedVersions(store.read, id)).length > 0)
        throw new Error(`versions of the transaction ${id} could not be finished`);
    },
    findForgotten: async (beforeMillis) => {
      const forgotten = await unfinished.listForgottenTransactions(store.read, beforeMillis, forgottenBatch);
      if (forgotten.length === 0) return;
      await store.write(async (session) => {
        for (const id of forgotten) await insertTask(session, finishOf(id));
      });
    },
    settled: async () => {
      while (noting !== undefined) await noting;
    },
  };
}

export function finishOf(transactionId: string) {
  return { kind: "finish", subject: transactionId } as const;
}

/** Returns a key that identifies a commit. A version number can be reused after a withdrawal or in another generation. */
function keyOf({ tableId, branch, generation, version, committedName }: VersionRecord): string {
  return `${tableId} ${generation} ${version} ${committedName} ${branch}`;
}

/** A recorded version that could not be placed. A reader, deferred work or a retry with the same manifest finishes it. */
export class VersionInDoubtError extends CatalogError {
  constructor({ version, branch }: VersionRecord, cause?: unknown) {
    const problem = `version ${version} on branch ${branch} is recorded, but its manifest has no final name yet`;
    super("ServiceUnavailable", `${problem}: send the same request again`, { cause });
  }
}
