import { CatalogError, type Identifier } from "@tiltyard/protocol";
import pMap from "p-map";
import type { AuditEntry } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import type { LockableTable, Session } from "../store/store.ts";
import { delayTask, deleteTask, insertTask } from "../store/tasks.ts";
import { type LocatedVersion, publishVersions, type VersionRecord } from "../store/versions.ts";
import { finishOf } from "./finish.ts";
import type { CommitParts } from "./parts.ts";
import { type PlacedVersion, placeManifest } from "./place.ts";
import type { PreparedVersion } from "./prepare.ts";
import { recordVersion } from "./record.ts";
import { rollBack } from "./withdraw.ts";

/**
 * How many versions of one batch are prepared or placed at once. More would take the database connections
 * from other requests, and begin all of a batch although its first version is refused.
 */
export const versionsAtOnce = 8;

/** How long versions are held for a process that does not reach the commit point, and how much longer for each. */
const heldForMs = 20_000;
const heldForEachMs = 100;
const retryAfterMs = 1_000;

/** A version to be committed, and the table that gets it. */
export interface Entry {
  readonly identifier: Identifier;
  readonly prepared: PreparedVersion;
}

/** What is committed in one database transaction. */
export interface Commit {
  readonly audit: AuditEntry;
  /**
   * Versions of tables that are there. Their manifests get their final names before the commit point, and lose
   * them again when one of them cannot, so that all or none of them are committed.
   */
  readonly together?: readonly Entry[];
  /**
   * What else happens at the commit point; it records the audit entry. It may run more than once.
   *
   * @returns The records that it inserted or found. Their manifests get their final names after the commit point.
   */
  readonly apply?: (session: Session) => Promise<readonly LocatedVersion[]>;
  /** The database table that must not change while `apply` runs. */
  readonly locking?: LockableTable | undefined;
}

/** Versions that are placed. */
export interface Committed {
  readonly together: readonly VersionRecord[];
  readonly applied: readonly VersionRecord[];
}

/**
 * Commits versions. When this resolves each manifest has its final name.
 *
 * @throws CatalogError ConcurrentModification; ServiceUnavailable when the outcome is in doubt: a retry of the same
 *   request gets it.
 */
export async function commitVersions(parts: CommitParts, commit: Commit): Promise<Committed> {
  const { store, finishing } = parts;
  const { audit, together = [], apply, locking } = commit;
  if (together.length > 0 && apply !== undefined) await rehearse(parts, apply, locking);
  const found = await reserve(parts, together, audit.id);
  const held = found.filter(({ record }) => record.held);
  let present: readonly VersionRecord[] = [];
  let placed: readonly PlacedVersion[] = [];
  let applied: readonly LocatedVersion[] = [];
  try {
    present = await finishAll(
      parts,
      found.filter(({ record }) => !record.held),
    );
    if (apply === undefined && held.length === 0) return { together: present, applied: [] };
    placed = await pMap(held, (each) => placeOrRefuse(parts, each), { concurrency: versionsAtOnce });
    applied = await store.write(
      async (session) => {
        if (held.length > 0) {
          if ((await publishVersions(session, audit.id)) !== held.length) throw conflict("it took too long");
          await deleteTask(session, finishOf(audit.id));
        }
        if (apply !== undefined) return apply(session);
        await audit.record(session);
        return [];
      },
      { locking },
    );
  } catch (error) {
    if (held.length > 0) await rollBackSoon(parts, audit.id);
    throw error;
  }
  for (const each of placed) finishing.note(each);
  const inPlace = new Map(
    [...present, ...placed.map(({ record }) => ({ ...record, finished: true }))].map((record) => [
      nameOf(record),
      record,
    ]),
  );
  return {
    together: found.map(({ record }) => inPlace.get(nameOf(record)) ?? record),
    applied: await finishAll(parts, applied),
  };
}

const rehearsal = new Error("this was a rehearsal");

/** Rehearses the work of the commit point and rolls it back, so that an error comes before anything is placed. */
async function rehearse(
  { store }: CommitParts,
  apply: NonNullable<Commit["apply"]>,
  locking: LockableTable | undefined,
): Promise<void> {
  const work = async (session: Session) => {
    await apply(session);
    throw rehearsal;
  };
  await store.write(work, { locking }).catch((error: unknown) => {
    if (error !== rehearsal) throw error;
  });
}

/**
 * Records versions that are hidden until the commit point. A task rolls them back when this process does not
 * reach it.
 */
async function reserve(
  { store }: CommitParts,
  entries: readonly Entry[],
  transactionId: string,
): Promise<readonly LocatedVersion[]> {
  if (entries.length === 0) return [];
  return store.write(async (session) => {
    const found = [];
    for (const { identifier, prepared } of entries) {
      const table = await requireTable(session, identifier);
      const record = await recordVersion(session, table, prepared, transactionId, true);
      found.push({ location: table.location, record });
    }
    if (found.some(({ record }) => record.held))
      await insertTask(session, finishOf(transactionId), heldForMs + heldForEachMs * found.length);
    return found;
  });
}

/** The task, or the next reader, rolls back what fails here. */
async function rollBackSoon(parts: CommitParts, transactionId: string): Promise<void> {
  try {
    await rollBack(parts, transactionId);
  } catch {
    await parts.store
      .write((session) => delayTask(session, finishOf(transactionId), retryAfterMs))
      .catch(() => undefined);
  }
}

async function placeOrRefuse(parts: CommitParts, located: LocatedVersion): Promise<PlacedVersion> {
  const placed = await placeManifest(parts, located);
  if (placed !== undefined) return placed;
  const { version, branch } = located.record;
  throw conflict(`the manifest of version ${version} on branch ${branch} was deleted or its name was taken`);
}

function finishAll({ finishing }: CommitParts, versions: readonly LocatedVersion[]): Promise<VersionRecord[]> {
  return pMap(
    versions,
    async (located) => {
      const finished = await finishing.finish(located);
      if (finished !== undefined) return finished;
      const { version, branch } = located.record;
      throw conflict(`the manifest of version ${version} on branch ${branch} was deleted or its name was taken`);
    },
    { concurrency: versionsAtOnce },
  );
}

function conflict(problem: string): CatalogError {
  return new CatalogError("ConcurrentModification", `the commit was withdrawn: ${problem}`);
}

function nameOf({ tableId, branch, version }: VersionRecord): string {
  return `${tableId} ${version} ${branch}`;
}
