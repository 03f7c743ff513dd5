import { CatalogError, formatIdentifier } from "@tiltyard/protocol";
import { isAllowed, withRole } from "../auth/authorize.ts";
import { requireReadable } from "../commits/bases.ts";
import { type PreparedVersion, prepareVersion, type VersionRequest } from "../commits/prepare.ts";
import { parseManifest, readPlaced, requireVersion } from "../commits/read.ts";
import { differingFragments } from "../lance/manifest.ts";
import { newManifestCopy, versionsFolder } from "../lance/version-names.ts";
import type { Location } from "../storage/location.ts";
import type { TableRecord } from "../store/tables.ts";
import { claimBasesOfVersion } from "../tables/bases.ts";
import type { AuthorizedCaller, Catalog } from "./handler.ts";

/**
 * Prepares a commit and checks its content: the caller may read all files of the version, and a job changes only its own
 * rows of Geneva's tables, which jobs share.
 *
 * @param table The table, or only the location of one that the same batch declares.
 * @throws CatalogError PermissionDenied; InvalidInput if the version cannot be read; also like `prepareVersion`
 */
export async function prepareCommit(
  catalog: Catalog,
  caller: AuthorizedCaller,
  table: TableRecord | { readonly location: Location },
  request: VersionRequest,
): Promise<PreparedVersion> {
  const prepared = await prepareVersion(catalog, table, request, caller);
  const { locations } = catalog;
  if ("id" in table)
    await claimBasesOfVersion(catalog, { locations, table, principal: caller.principal }, prepared.foreignBases);
  else await requireReadable(catalog, prepared.foreignBases, withRole(caller.principal, "reader"));
  const isRetry = prepared.identity === undefined;
  if ("id" in table && !isRetry && !isAllowed(caller.principal, { role: "writer", object: table.identifier }))
    await requireOwnRecords(catalog, caller, table, prepared);
  return prepared;
}

/** The maximum number of fragments in a condition. A commit in which more differ reads all rows. */
const fragmentsMax = 100;

/** Compares the rows of other jobs before and after a commit, in the fragments that differ. */
async function requireOwnRecords(
  catalog: Catalog,
  caller: AuthorizedCaller,
  table: TableRecord,
  { branch, request: { version }, base, committedName }: PreparedVersion,
): Promise<void> {
  const { identifier: id } = table;
  const onRecords = { role: "writer", orRole: "committer", object: id } as const;
  const { job } = caller.principal.grants.find((grant) => grant.job && isAllowed({ grants: [grant] }, onRecords)) ?? {};
  if (job === undefined) throw new Error("only a job commits without the role writer");
  // A table without rows has none of other jobs, and a commit of a version up to the latest one is a conflict.
  if (base?.highestVersion === undefined || version <= base.highestVersion) return;
  const { location } = table;
  const objects = await catalog.storage.at(location);
  const latest = await requireVersion(catalog, { table, branch }, base.highestVersion);
  // The library would rename a staged manifest to its final name, so it reads a copy.
  const copy = newManifestCopy(location, branch);
  const [ofLatest, ofStaged] = await parseManifest(
    async (bytesMax) => {
      const staged = await objects.read(`${versionsFolder(location, branch)}/${committedName}`, bytesMax);
      if (staged === undefined)
        throw new CatalogError("InvalidInput", "manifest_path: the object was deleted concurrently");
      return { staged: staged.bytes, placed: await readPlaced(objects, { location, record: latest }, bytesMax) };
    },
    async ({ staged, placed }) => {
      const fragments = fragmentsToCompare(placed, staged);
      await objects.create(copy, staged);
      return fragments;
    },
  );
  const args = { job: formatIdentifier(job) };
  try {
    const { result: before } = await catalog.rows.read(
      "recordsOfOthers",
      { id, branch, version: base.highestVersion, caller },
      { ...args, fragments: ofLatest },
    );
    const after = await catalog.rows.readUnrecorded(
      "recordsOfOthers",
      { table, branch, caller, staged: { version, manifest_path: copy } },
      { ...args, columns: before.columns, fragments: ofStaged },
    );
    if (after.digest === before.digest) return;
  } finally {
    await objects.delete(copy);
  }
  throw new CatalogError(
    "PermissionDenied",
    `${caller.principal.name} may only change rows of ${formatIdentifier(id)} with its own job_id`,
  );
}

/** Returns the fragments of two manifests whose rows can differ; undefined for all fragments of both. */
function fragmentsToCompare(latest: Uint8Array, staged: Uint8Array): readonly (readonly number[] | undefined)[] {
  const differing = differingFragments(latest, staged) ?? [];
  return differing.some(({ length }) => length > fragmentsMax) ? [] : differing;
}
