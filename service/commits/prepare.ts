import { CatalogError, type contracts, type RequestOf } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { requireNotDropped } from "../domain/require.ts";
import { parseLocation } from "../storage/location.ts";
import { findBranch } from "../store/branches.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { findVersion } from "../store/versions.ts";
import { catchUp } from "./adopt.ts";
import { type ManifestNames, readManifestPath, versionsFolder } from "./manifest.ts";
import type { CommitParts } from "./parts.ts";
import { forgetDeletedBranch } from "./record-adoption.ts";

type Request = RequestOf<typeof contracts.createTableVersion>;

/** A version to commit. */
export type VersionRequest = Pick<Request, "version" | "manifest_path"> &
  Partial<Pick<Request, "branch" | "manifest_size" | "e_tag" | "metadata" | "naming_scheme">>;

/** A commit with a valid request and an existing manifest. */
export interface PreparedVersion extends ManifestNames {
  /** The location of the table. The table may be declared in the same batch. */
  readonly location: string;
  readonly branch: string;
  readonly request: VersionRequest;
  /** The identity of the staged manifest; undefined if the commit is a retry. */
  readonly identity: string | undefined;
  /**
   * The state of the branch when its latest version was known to be placed, which the commit follows; undefined if the
   * commit follows changes of its own batch.
   */
  readonly base: Base | undefined;
}

export interface Base {
  readonly generation: number;
  readonly highestVersion: number | undefined;
}

const newBranch: Base = { generation: 1, highestVersion: undefined };

/**
 * Validates the request and the staged manifest, persists the manifest durably, and adopts earlier versions of writers
 * outside the catalog (step 1 of a commit).
 *
 * @param table The table, or only the location of one that the same batch declares.
 * @throws CatalogError InvalidInput, ServiceUnavailable
 */
export async function prepareVersion(
  parts: CommitParts,
  table: TableRecord | { readonly location: string },
  request: VersionRequest,
): Promise<PreparedVersion> {
  const branch = branchOf(request);
  const location = parseLocation(table.location);
  const names = readManifestPath(
    request.manifest_path,
    { location, branch, version: request.version },
    request.naming_scheme,
  );
  const prepared = { ...names, location: table.location, branch, request };

  const objects = await parts.storage.at(location);
  const [staged, latest] = await Promise.all([
    objects.persist(`${versionsFolder(location, branch)}/${names.committedName}`),
    "id" in table ? catchUp(parts, table, branch) : undefined,
  ]);
  if (staged === undefined) {
    const present = "id" in table && (await findVersion(parts.store.read, table.id, branch, request.version));
    // The manifest of a retried commit no longer has its staged name.
    if (present && isManifestOf(present, names)) return { ...prepared, identity: undefined, base: newBranch };
    if ("id" in table) await requireNotDropped(parts.store.read, table);
    throw new CatalogError("InvalidInput", `manifest_path: no object exists at ${request.manifest_path}`);
  }
  if (!("id" in table)) return { ...prepared, identity: staged.identity, base: newBranch };
  const base =
    latest === undefined || (await forgetDeletedBranch(parts, table, latest))
      ? await emptyBase(parts.store.read, table.id, branch)
      : { generation: latest.generation, highestVersion: latest.version };
  return { ...prepared, identity: staged.identity, base };
}

/**
 * Returns a branch without versions. A version that another request has recorded meanwhile is not part of it, because
 * its placement is unknown.
 */
async function emptyBase(session: Session, tableId: number, branch: string): Promise<Base> {
  const { generation, highestVersion } = (await findBranch(session, tableId, branch)) ?? newBranch;
  const isEmpty =
    highestVersion === undefined || (await findVersion(session, tableId, branch, highestVersion)) === undefined;
  return { generation, highestVersion: isEmpty ? highestVersion : undefined };
}

/** Reports whether a record belongs to the manifest that a request names. */
export function isManifestOf(
  record: { readonly committedName: string; readonly manifestName: string },
  { committedName }: ManifestNames,
): boolean {
  return [record.committedName, record.manifestName].includes(committedName);
}
