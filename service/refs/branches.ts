import { CatalogError, contracts, formatIdentifier, mainBranch } from "@tiltyard/protocol";
import { z } from "zod";
import { catchUp } from "../commits/adopt.ts";
import type { CommitDeps, StoreDeps } from "../commits/deps.ts";
import { forgetDeletedBranch } from "../commits/record-adoption.ts";
import { branchNotFound, requireNotDropped } from "../domain/require.ts";
import { branchFolder } from "../lance/version-names.ts";
import { findAuditRecord } from "../store/audit.ts";
import { emptyBranch, listBranchNames } from "../store/branches.ts";
import type { TableRecord } from "../store/tables.ts";
import { latestVersion } from "../store/versions.ts";
import type { Lease } from "../tasks/lease.ts";
import { findRef, listRefNames, listRefs, type Ref, type RefKind, refKey } from "./ref-files.ts";
import { tagKind } from "./tags.ts";

const BranchContents = z.object({
  /** Null for the main branch. */
  parentBranch: z.string().nullish(),
  parentVersion: z.int().min(0),
  /** The time of creation in seconds since the epoch. */
  createAt: z.int().min(0),
  manifestSize: z.int().min(0),
  metadata: z.record(z.string(), z.string()).optional(),
  /** The versions at which the branch and its ancestors began, each with an id; absent in older releases of Lance. */
  identifier: z.object({ version_mapping: z.array(z.tuple([z.number(), z.string()])) }).optional(),
});
export type BranchContents = z.infer<typeof BranchContents>;

export const branchKind: RefKind<BranchContents> = { folder: "_refs/branches", contents: BranchContents };

/**
 * Frees the name of a branch without a file if a Lance client has deleted the branch, or if CreateTableBranch was interrupted.
 *
 * @param lease The lease of the refs.
 * @param isReadable Reports whether a manifest of the table is found, without which a missing file proves nothing.
 */
export async function deleteRemains(
  deps: CommitDeps,
  table: TableRecord,
  name: string,
  { lease, isReadable }: { readonly lease: Lease; readonly isReadable: () => Promise<boolean> },
): Promise<void> {
  const at = { table, branch: name };
  if ((await latestVersion(deps.store.read, at)) === undefined) return;
  if ((await findRef(deps, table, branchKind, name)) !== undefined || !(await isReadable())) return;
  const latest = await catchUp(deps, at);
  if (latest === undefined || (await forgetDeletedBranch(deps, table, latest))) return;
  const { operation } = (await findAuditRecord(deps.store.read, latest.transactionId)) ?? {};
  if (operation === contracts.createTableBranch.operationId) await (await prepareDeletion(deps, table, name, lease))();
}

/**
 * Requires that a branch can be created under a name. A branch with records but without a file also exists: a Lance client
 * is creating it.
 *
 * @throws CatalogError TableBranchAlreadyExists; InvalidTableState if its folder and the files of another branch overlap.
 */
export async function requireFreeBranchName({ store, storage }: StoreDeps, table: TableRecord, name: string) {
  const names = [
    ...(await listBranchNames(store.read, table.id)),
    ...(await listRefNames({ storage }, table, branchKind)),
  ];
  if (names.includes(name))
    throw new CatalogError(
      "TableBranchAlreadyExists",
      `the branch ${JSON.stringify(name)} of table ${formatIdentifier(table.identifier)} already exists`,
    );
  const overlapping = names.find((other) => isAmongFilesOf(name, other) || isAmongFilesOf(other, name));
  if (overlapping !== undefined)
    throw new CatalogError(
      "InvalidTableState",
      `name: the folders of the branches ${JSON.stringify(name)} and ${JSON.stringify(overlapping)} would overlap: use another name`,
    );
}

/** Reports whether the folder of a branch would be among the `data` or the `_versions` of another branch. */
function isAmongFilesOf(branch: string, other: string): boolean {
  return branch.startsWith(`${other}/`) && /^(data|_.*)$/.test(branch.slice(other.length + 1).split("/")[0] ?? "");
}

/** Requires that no deletion has begun. @throws CatalogError TableNotFound, TableBranchNotFound */
export async function requireNotDeleted(deps: StoreDeps, table: TableRecord, branch: string): Promise<void> {
  await requireNotDropped(deps.store.read, table);
  if (branch !== mainBranch && (await findRef(deps, table, branchKind, branch)) === undefined)
    throw branchNotFound(table, branch);
}

/**
 * Prepares the deletion of a branch. As in Lance, no branch may begin on it, and no tag may refer to it. Its folder must
 * not contain files of another branch.
 *
 * @returns A function that deletes the file, the objects and last the records of the branch, which allow a retry.
 * @throws CatalogError TableBranchNotFound, InvalidTableState
 */
export async function prepareDeletion({ store, storage }: StoreDeps, table: TableRecord, name: string, lease: Lease) {
  const where = `branch ${JSON.stringify(name)} of table ${formatIdentifier(table.identifier)}`;
  const [branches, tags, recorded] = await Promise.all([
    listRefs({ storage }, table, branchKind),
    listRefs({ storage }, table, tagKind),
    listBranchNames(store.read, table.id),
  ]);
  const found = branches.find((branch) => branch.name === name);
  if (found === undefined && !recorded.includes(name))
    throw new CatalogError("TableBranchNotFound", `${where} does not exist`);

  const dependents = [
    ...branches.filter((branch) => isBasedOn(branch, name, found)).map((branch) => `branch ${branch.name}`),
    ...tags.filter((tag) => tag.contents.branch === name).map((tag) => `tag ${tag.name}`),
  ];
  if (dependents.length > 0)
    throw new CatalogError(
      "InvalidTableState",
      `${where} is used by ${dependents.slice(0, 10).join(", ")}. Delete those first`,
    );
  const others = new Set([...recorded, ...branches.map((branch) => branch.name)]);
  const owner = [...others].find((other) => isAmongFilesOf(name, other));
  if (owner !== undefined)
    throw new CatalogError(
      "InvalidTableState",
      `${where} is in a folder with files of branch ${JSON.stringify(owner)}. Delete that one first`,
    );
  const inside = [...others].filter((other) => other.startsWith(`${name}/`));
  const nested = new Set(inside.map((other) => branchFolder(table.location, other)));
  return async (): Promise<void> => {
    const objects = await storage.at(table.location);
    const folder = branchFolder(table.location, name);
    // The file is missing if an interrupted deletion continues.
    await objects.delete(found?.key ?? refKey(table, branchKind, name));
    if (nested.size === 0) await objects.deleteFolder(folder, lease.requireValid);
    else
      for await (const { key } of objects.list(folder)) {
        lease.requireValid();
        if (!isInside(key, nested)) await objects.delete(key);
      }
    lease.requireValid();
    await store.write((session) => emptyBranch(session, { table, branch: name }));
  };
}

/** Reports whether a key is in one of the folders, of which a table may have thousands. */
function isInside(key: string, folders: ReadonlySet<string>): boolean {
  for (let end = key.lastIndexOf("/"); end > 0; end = key.lastIndexOf("/", end - 1))
    if (folders.has(key.slice(0, end))) return true;
  return false;
}

function isBasedOn(branch: Ref<BranchContents>, name: string, on: Ref<BranchContents> | undefined): boolean {
  if (branch.contents.parentBranch === name) return true;
  const [mine = [], theirs = []] = [branch, on].map((each) => each?.contents.identifier?.version_mapping);
  return theirs.length > 0 && mine.length > theirs.length && theirs.every(([, id], depth) => mine[depth]?.[1] === id);
}
