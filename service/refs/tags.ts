import { CatalogError, formatIdentifier, mainBranch } from "@tiltyard/protocol";
import { z } from "zod";
import type { CommitDeps, StoreDeps } from "../commits/deps.ts";
import { openBranchOf, requireVersion } from "../commits/read.ts";
import { branchOf } from "../domain/require.ts";
import type { TableRecord } from "../store/tables.ts";
import { findRef, type Ref, type RefKind } from "./ref-files.ts";

/** The maximum length of the name of a tag, which all stores support in file names. */
const tagLengthMax = 200;

/** The file of a tag in Lance's format. A move of the tag keeps unknown fields. */
const TagContents = z.looseObject({
  /** Null for the main branch. */
  branch: z.string().nullish(),
  version: z.int().min(0),
  manifestSize: z.int().min(0),
});
export type TagContents = z.infer<typeof TagContents>;

export const tagKind: RefKind<TagContents> = { folder: "_refs/tags", contents: TagContents };

/** Validates a tag by Lance's rules, in ASCII because of pylance 14. @throws CatalogError InvalidInput */
export function checkNewTag(tag: string): void {
  if (/^(?!\.)(?!.*\.\.)[A-Za-z0-9._-]+(?<!\.|\.lock)$/.test(tag) && tag.length <= tagLengthMax) return;
  throw new CatalogError(
    "InvalidInput",
    `tag: ${JSON.stringify(tag.slice(0, tagLengthMax))} is not a tag name: it has letters, digits, . - _, ` +
      `${tagLengthMax} at most, no dot at its ends, no two dots in a row, and does not end with .lock`,
  );
}

/** Returns an existing tag. @throws CatalogError TableTagNotFound */
export async function requireTag(deps: Pick<StoreDeps, "storage">, table: TableRecord, tag: string) {
  const found = tag.length <= tagLengthMax ? await findRef(deps, table, tagKind, tag) : undefined;
  if (found !== undefined) return found;
  throw new CatalogError(
    "TableTagNotFound",
    `table ${formatIdentifier(table.identifier)} has no tag ${JSON.stringify(tag.slice(0, tagLengthMax))}`,
  );
}

export function versionOfTag({ contents }: Ref<TagContents>): { readonly version: number; readonly branch?: string } {
  const { version, branch } = contents;
  return { version, ...(typeof branch === "string" && { branch }) };
}

/** Resolves a version or a tag, by default the latest. @throws CatalogError InvalidInput for both; TableTagNotFound */
export async function versionAsked(
  deps: Pick<StoreDeps, "storage">,
  table: TableRecord,
  request: {
    readonly tag?: string | undefined;
    readonly version?: number | undefined;
    readonly branch?: string | undefined;
  },
): Promise<{ readonly version?: number | undefined; readonly branch?: string | undefined }> {
  if (request.tag === undefined) return request;
  if (request.version !== undefined || request.branch !== undefined)
    throw new CatalogError("InvalidInput", "tag: must not be combined with version or branch");
  return versionOfTag(await requireTag(deps, table, request.tag));
}

/**
 * Creates the contents of a tag. The manifest of the version must exist, because a client may have deleted it although
 * the catalog still has its record.
 *
 * @throws CatalogError TableBranchNotFound, TableVersionNotFound
 */
export async function contentsFor(
  deps: CommitDeps,
  table: TableRecord,
  request: { readonly version: number; readonly branch?: string | undefined },
): Promise<TagContents> {
  const at = await openBranchOf(deps, { table, branch: branchOf(request) });
  const { branch, folder, objects } = at;
  const { manifestName } = await requireVersion(deps, at, request.version);
  const manifest = await objects.find(`${folder}/${manifestName}`);
  if (manifest === undefined)
    throw new CatalogError(
      "TableVersionNotFound",
      `version ${request.version} on branch ${branch} of table ${formatIdentifier(table.identifier)} was cleaned up`,
    );
  return {
    branch: branch === mainBranch ? null : branch,
    version: request.version,
    updatedAt: new Date().toISOString(),
    manifestSize: manifest.sizeBytes,
  };
}

export function toText(contents: TagContents): string {
  return JSON.stringify(contents, undefined, 2);
}
