import { CatalogError } from "@tiltyard/protocol";
import pMap from "p-map";
import type { LockableTable, Session } from "../store/store.ts";
import type { LocatedVersion, VersionRecord } from "../store/versions.ts";
import type { CommitParts } from "./parts.ts";

/**
 * How many versions of one request are prepared or placed at once. More would starve other requests of database
 * connections, and would start all of a batch although its first version is refused.
 */
export const versionsAtOnce = 8;

/**
 * Work at the commit point, which also inserts the audit record. It may run more than once.
 *
 * @returns The records that it inserted or found. Their manifests get their final names after the commit point.
 */
export type Apply = (session: Session) => Promise<readonly LocatedVersion[]>;

/**
 * Commits the versions that `apply` records, usually one. Each manifest has its final name when this resolves.
 *
 * @param locking The database table that must not change while `apply` runs.
 * @throws CatalogError ConcurrentModification; ServiceUnavailable when the outcome is in doubt: a retry of the same
 *   request resolves it.
 */
export async function commit(parts: CommitParts, apply: Apply, locking?: LockableTable): Promise<VersionRecord[]> {
  return finishAll(parts, await parts.store.write(apply, { locking }));
}

/** Places the manifests of recorded versions. @throws as `commit` */
export function finishAll({ finishing }: CommitParts, versions: readonly LocatedVersion[]): Promise<VersionRecord[]> {
  return pMap(versions, async (located) => (await finishing.finish(located)) ?? refuse(located), {
    concurrency: versionsAtOnce,
  });
}

/** @throws CatalogError ConcurrentModification for a version whose manifest cannot be placed. */
export function refuse({ record: { version, branch } }: LocatedVersion): never {
  throw withdrawn(`the manifest of version ${version} on branch ${branch} was deleted or its name was taken`);
}

export function withdrawn(problem: string): CatalogError {
  return new CatalogError("ConcurrentModification", `the commit was withdrawn: ${problem}`);
}
