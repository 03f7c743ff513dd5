import { CatalogError, type Identifier } from "@tiltyard/protocol";
import pMap from "p-map";
import { requireTable } from "../domain/require.ts";
import type { AuditEntry } from "../domain/transaction.ts";
import type { LockableTable, Session } from "../store/store.ts";
import { delayTask, deleteTask, insertTask } from "../store/tasks.ts";
import { listUnfinishedVersions, publishVersions } from "../store/unfinished-versions.ts";
import type { LocatedVersion } from "../store/versions.ts";
import { define } from "../views/definition.ts";
import type { CommitDeps, PlacedVersion } from "./deps.ts";
import { finishOf } from "./finish.ts";
import { placeManifest } from "./place.ts";
import type { PreparedVersion } from "./prepare.ts";
import { recordVersion } from "./record.ts";
import { rollBack } from "./withdraw.ts";

/**
 * The number of versions of one request that are prepared or placed concurrently. A higher number would exhaust the
 * database connections, and would start all versions of a batch even if its first one is rejected.
 */
export const versionsAtOnce = 8;

/** Records versions and the audit at the commit point, perhaps more than once. They are placed afterwards. */
type Apply = (session: Session) => Promise<readonly LocatedVersion[]>;

/**
 * Commits the versions that `apply` records, usually one. Every manifest has its final name when the result resolves.
 *
 * @param locking The database table that must not change while `apply` runs.
 * @throws CatalogError ConcurrentModification; ServiceUnavailable if the outcome is in doubt, which a retry of the same
 * request resolves.
 */
export async function commit(deps: CommitDeps, apply: Apply, locking?: LockableTable): Promise<LocatedVersion[]> {
  return finishAll(deps, await deps.store.write(apply, { locking }));
}

/** The time for which a process may hold versions before the commit point, and the addition for each version. */
const heldForMs = 20_000;
const heldForEachMs = 100;
const retryAfterMs = 1_000;

function heldMs(versions: number): number {
  return heldForMs + heldForEachMs * versions;
}

export interface Entry {
  readonly identifier: Identifier;
  readonly prepared: PreparedVersion;
}

export interface Batch {
  readonly audit: AuditEntry;
  /** The versions that are placed before the commit point. If one fails, the others are removed again. */
  readonly entries: readonly Entry[];
  /** Applies further changes. Without it, only the audit entry is recorded. */
  readonly apply?: Apply;
  readonly locking?: LockableTable | undefined;
}

/** Commits all versions of a batch or none. @returns Those of the entries and of `apply`. @throws like `commit` */
export async function commitTogether(deps: CommitDeps, batch: Batch) {
  const { audit, entries, apply, locking } = batch;
  if (apply !== undefined && entries.length === 0) return { entries: [], applied: await commit(deps, apply, locking) };
  if (apply !== undefined) await rehearse(deps, apply, locking);
  const placesUntil = performance.now() + heldMs(entries.length);
  const found = await reserve(deps, entries, audit.id);
  const { repeated, placed, applied } = await publish(deps, batch, found, placesUntil).catch(async (error: unknown) => {
    if (found.some(isHeld)) await rollBackSoon(deps, batch);
    throw error;
  });
  for (const each of placed) deps.finishing.note(each);
  const published = placed.map(
    ({ location, record }): LocatedVersion => ({ location, record: { ...record, state: "finished" } }),
  );
  return {
    entries: found.map((each) => (isHeld(each) ? published : repeated).shift() ?? each),
    applied: await finishAll(deps, applied),
  };
}

const rehearsal = new Error("this was a rehearsal");

/** Runs the work of the commit point and rolls it back, so that errors occur before any placement. */
async function rehearse({ store }: CommitDeps, apply: Apply, locking: LockableTable | undefined): Promise<void> {
  const work = async (session: Session) => {
    await apply(session);
    throw rehearsal;
  };
  await store.write(work, { locking }).catch((error: unknown) => {
    if (error !== rehearsal) throw error;
  });
}

/** Records versions that are hidden until the commit point. If this process does not reach it, a task rolls them back. */
async function reserve({ store }: CommitDeps, entries: readonly Entry[], transactionId: string) {
  return store.write(async (session) => {
    const found: LocatedVersion[] = [];
    for (const { identifier, prepared } of entries) {
      const table = await requireTable(session, identifier);
      const record = await recordVersion(session, table, prepared, transactionId, true);
      found.push({ location: table.location, record });
    }
    if (found.some(isHeld)) await insertTask(session, finishOf(transactionId), heldMs(found.length));
    return found;
  });
}

/**
 * Places the held versions and publishes them together with all other changes at the commit point.
 *
 * @param placesUntil The time of `performance.now()` at which other processes may roll the batch back.
 */
async function publish(
  deps: CommitDeps,
  { audit, entries, apply, locking }: Batch,
  found: readonly LocatedVersion[],
  placesUntil: number,
) {
  const held = found.filter(isHeld);
  // An earlier attempt of the same request committed these versions.
  const repeated = await finishAll(
    deps,
    found.filter((each) => !isHeld(each)),
  );
  if (apply === undefined && held.length === 0) return { repeated, placed: [], applied: [] };
  const placed = await placeAll(deps, held, placesUntil);
  const applied = await deps.store.write(
    async (session) => {
      if (held.length > 0) {
        for (const [index, { identifier, prepared }] of entries.entries()) {
          const each = found[index];
          if (each === undefined || !isHeld(each)) continue;
          const { id } = await requireTable(session, identifier);
          if (id !== each.record.tableId) throw withdrawn("the table was replaced");
          await define(session, id, prepared.view);
        }
        if ((await publishVersions(session, audit.id)) !== held.length) throw expired();
        await deleteTask(session, finishOf(audit.id));
      }
      if (apply !== undefined) return apply(session);
      await audit.record(session);
      return [];
    },
    { locking },
  );
  return { repeated, placed, applied };
}

/** Places versions until a time. After a failure, it waits for the others, because a rollback would miss a later placement. */
async function placeAll(deps: CommitDeps, versions: readonly LocatedVersion[], untilMs: number) {
  const placing: Promise<PlacedVersion>[] = [];
  const place = async (each: LocatedVersion): Promise<PlacedVersion> => {
    if (performance.now() > untilMs) throw expired();
    return (await placeManifest(deps, each)) ?? refuse(each);
  };
  const begin = (each: LocatedVersion) => {
    const begun = place(each);
    placing.push(begun);
    return begun;
  };
  try {
    return await pMap(versions, begin, { concurrency: versionsAtOnce });
  } finally {
    await Promise.allSettled(placing);
  }
}

/** Rolls back a batch. If that fails, the task or the next reader rolls it back. */
async function rollBackSoon(deps: CommitDeps, { audit: { id }, entries }: Batch): Promise<void> {
  const postpone = () => deps.store.write((session) => delayTask(session, finishOf(id), retryAfterMs));
  await reserveAgain(deps, entries, id)
    .then(() => rollBack(deps, id))
    .catch(postpone)
    .catch(() => undefined);
}

/** Reserves versions again that a task has rolled back before their manifests were placed, so that no reader adopts these. */
async function reserveAgain(deps: CommitDeps, entries: readonly Entry[], transactionId: string): Promise<void> {
  if ((await listUnfinishedVersions(deps.store.read, transactionId)).length > 0) return;
  // The number of some may be in use by now.
  for (const entry of entries) await reserve(deps, [entry], transactionId).catch(() => undefined);
}

function isHeld({ record }: LocatedVersion): boolean {
  return record.state === "held";
}

/** Places the manifests of recorded versions. @throws like `commit` */
function finishAll({ finishing }: CommitDeps, versions: readonly LocatedVersion[]): Promise<LocatedVersion[]> {
  const finish = async (each: LocatedVersion) => ({ ...each, record: (await finishing.finish(each)) ?? refuse(each) });
  return pMap(versions, finish, { concurrency: versionsAtOnce });
}

/** Rejects a version whose manifest cannot be placed. @throws CatalogError ConcurrentModification */
function refuse({ record: { version, branch } }: LocatedVersion): never {
  throw withdrawn(`the manifest of version ${version} on branch ${branch} was deleted or its name is in use`);
}

function expired(): CatalogError {
  return withdrawn("the timeout expired");
}

function withdrawn(problem: string): CatalogError {
  return new CatalogError("ConcurrentModification", `the commit was withdrawn: ${problem}`);
}
