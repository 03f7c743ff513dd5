import { CatalogError, type contracts, mainBranch, type RequestOf } from "@tiltyard/protocol";
import { branchNotFound, branchOf, requireNotDropped } from "../domain/require.ts";
import type { Caller } from "../domain/transaction.ts";
import { requireMetadataWithin } from "../lance/metadata-limit.ts";
import { type ManifestNames, readManifestPath, refFile, versionsFolder } from "../lance/version-names.ts";
import type { Location } from "../storage/location.ts";
import { type BranchKey, findBranch } from "../store/branches.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { findVersion, type VersionRecord } from "../store/versions.ts";
import { findView } from "../store/views.ts";
import { definedBy, definitionIn, type NewDefinition, type ViewDefinition } from "../views/definition.ts";
import { catchUp } from "./adopt.ts";
import { foreignBasesIn, parsed } from "./bases.ts";
import type { CommitDeps } from "./deps.ts";
import { parseManifest, readManifest } from "./read.ts";
import { forgetDeletedBranch } from "./record-adoption.ts";

type Request = RequestOf<typeof contracts.createTableVersion>;

export type VersionRequest = Pick<Request, "version" | "manifest_path"> &
  Partial<Pick<Request, "branch" | "manifest_size" | "e_tag" | "metadata" | "naming_scheme">>;

export interface PreparedVersion extends ManifestNames {
  /** The location of the table. The table may be declared in the same batch. */
  readonly location: Location;
  readonly branch: string;
  readonly request: VersionRequest;
  readonly foreignBases: readonly Location[];
  /** The identity of the staged manifest; undefined if the commit is a retry. */
  readonly identity: string | undefined;
  /** Facts of the version for people. */
  readonly summary: Pick<VersionRecord, "lanceOperation" | "rowCount">;
  /** The definition of the view that the table becomes; undefined if the version has none or that of its predecessor. */
  readonly view: NewDefinition | undefined;
  /** The state of the branch that the commit follows; undefined if it follows changes of its own batch. */
  readonly base: Base | undefined;
}

export interface Base {
  readonly generation: number;
  readonly highestVersion: number | undefined;
}

const newBranch: Base = { generation: 1, highestVersion: undefined };

/**
 * Validates the request and the staged manifest, which is read once, persists the manifest durably, and adopts earlier versions of writers
 * outside the catalog (step 1 of a commit).
 *
 * @param table The table, or only the location of one that the same batch declares.
 * @param metadataBytesMax The limit of `requireMetadataWithin`; undefined without a limit.
 * @throws CatalogError InvalidInput, ServiceUnavailable; TableBranchNotFound if the branch was deleted; PermissionDenied for
 * a definition of a view whose source the caller may not read.
 */
export async function prepareVersion(
  deps: CommitDeps,
  table: TableRecord | { readonly location: Location },
  request: VersionRequest,
  caller: Pick<Caller, "principal">,
  metadataBytesMax?: number,
): Promise<PreparedVersion> {
  const branch = branchOf(request);
  const { location } = table;
  const names = readManifestPath(
    request.manifest_path,
    { location, branch, version: request.version },
    request.naming_scheme,
  );
  const prepared = { ...names, location, branch, request };

  const objects = await deps.storage.at(location);
  const [staged, latest] = await Promise.all([
    parseManifest(
      (bytesMax) => objects.persist(`${versionsFolder(location, branch)}/${names.committedName}`, bytesMax),
      async (found) => {
        if (found === undefined) return undefined;
        const manifest = await parsed(found.bytes, names.committedName);
        if (metadataBytesMax !== undefined) requireMetadataWithin(manifest, metadataBytesMax);
        return {
          identity: found.identity,
          foreignBases: foreignBasesIn(manifest, location),
          summary: { lanceOperation: manifest.lanceOperation, rowCount: manifest.rowCount },
          defined: branch === mainBranch ? definitionIn(manifest) : undefined,
        };
      },
    ),
    "id" in table ? catchUp(deps, { table, branch }) : undefined,
  ]);
  if (staged === undefined) {
    const present = "id" in table && (await findVersion(deps.store.read, { table, branch }, request.version));
    // The manifest of a retried commit no longer has its staged name.
    if (present && isManifestOf(present, names))
      return {
        ...prepared,
        foreignBases: [],
        summary: { lanceOperation: undefined, rowCount: undefined },
        identity: undefined,
        view: undefined,
        base: newBranch,
      };
    if ("id" in table) await requireNotDropped(deps.store.read, table);
    throw new CatalogError("InvalidInput", `manifest_path: no object exists at ${request.manifest_path}`);
  }
  const { defined, ...read } = staged;
  const view = defined && (await newDefinition(deps, table, latest, defined, caller));
  if (!("id" in table)) return { ...prepared, ...read, view, base: newBranch };
  if (latest !== undefined && !(await forgetDeletedBranch(deps, table, latest)))
    return { ...prepared, ...read, view, base: { generation: latest.generation, highestVersion: latest.version } };
  if (await isDeleted(deps, table, branch, read.summary)) throw branchNotFound(table, branch);
  return { ...prepared, ...read, view, base: await emptyBase(deps.store.read, { table, branch }) };
}

/** Lance's operation of the first version of a branch, which it commits before the file of the branch. */
const branchCreation = "Clone";

/** Reports whether a branch was deleted, so that a version is that of a writer that still has it open. */
async function isDeleted(
  { store, storage }: CommitDeps,
  table: TableRecord,
  branch: string,
  { lanceOperation = branchCreation }: PreparedVersion["summary"],
): Promise<boolean> {
  if (branch === mainBranch || lanceOperation === branchCreation) return false;
  if ((await findBranch(store.read, { table, branch })) === undefined) return false;
  const objects = await storage.at(table.location);
  return (await objects.find(refFile(table.location, "_refs/branches", branch))) === undefined;
}

/**
 * Returns the definition of a view in a manifest unless the table has it already. A version of another writer may have
 * brought a definition to the table: the caller that commits the next version does not become its definer.
 */
async function newDefinition(
  deps: CommitDeps,
  table: TableRecord | { readonly location: Location },
  latest: VersionRecord | undefined,
  defined: ViewDefinition,
  caller: Pick<Caller, "principal">,
): Promise<NewDefinition | undefined> {
  const { schemaDigest } = defined;
  if ("id" in table) {
    if ((await findView(deps.store.read, table.id))?.schemaDigest === schemaDigest) return undefined;
    const before = latest && (await readManifest(deps, table, latest, definitionIn));
    if (before?.schemaDigest === schemaDigest) return undefined;
  }
  return definedBy(caller, defined);
}

/** Returns a branch without versions. A version that was recorded meanwhile is excluded: it may be unplaced. */
async function emptyBase(session: Session, at: BranchKey): Promise<Base> {
  const { generation, highestVersion } = (await findBranch(session, at)) ?? newBranch;
  const isEmpty = highestVersion === undefined || (await findVersion(session, at, highestVersion)) === undefined;
  return { generation, highestVersion: isEmpty ? highestVersion : undefined };
}

export function isManifestOf(record: ManifestNames, { committedName }: ManifestNames): boolean {
  return [record.committedName, record.manifestName].includes(committedName);
}
