import { CatalogError } from "@tiltyard/protocol";
import pMap from "p-map";
import type { LockableTable, Session } from "../store/store.ts";
import type { LocatedVersion, VersionRecord } from "../store/versions.ts";
import type { CommitParts } from "./parts.ts";

/**
 * The number of versions of one request that are prepared or placed concurrently. A higher number would exhaust the
 * database connections, and would start all versions of a batch even if its first one is rejected.
 */
export const versionsAtOnce = 8;

/**
 * Work at the commit point, including the insertion of the audit record. It may run more than once.
 *
 * @returns The inserted or existing records. Their manifests are placed after the commit point.
 */
export type Apply = (session: Session) => Promise<readonly LocatedVersion[]>;

/**
 * Commits the versions that `apply` records, usually one. Every manifest has its final name when the result resolves.
 *
 * @param locking The database table that must not change while `apply` runs.
 * @throws CatalogError ConcurrentModification; ServiceUnavailable if the outcome is in doubt, which a retry of the same
 * request resolves.
 */
export async function commit(parts: CommitParts, apply: Apply, locking?: LockableTable): Promise<VersionRecord[]> {
  return finishAll(parts, await parts.store.write(apply, { locking }));
}

/** Places the manifests of recorded versions. @throws like `commit` */
export function finishAll({ finishing }: CommitParts, versions: readonly LocatedVersion[]): Promise<VersionRecord[]> {
  return pMap(versions, async (located) => (await finishing.finish(located)) ?? refuse(located), {
    concurrency: versionsAtOnce,
  });
}

/** Rejects a version whose manifest cannot be placed. @throws CatalogError ConcurrentModification */
export function refuse({ record: { version, branch } }: LocatedVersion): never {
  throw withdrawn(`the manifest of version ${version} on branch ${branch} was deleted or its name is in use`);
}

export function withdrawn(problem: string): CatalogError {
  return new CatalogError("ConcurrentModification", `the commit was withdrawn: ${problem}`);
}
