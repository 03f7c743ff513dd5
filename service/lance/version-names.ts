import { CatalogError, mainBranch } from "@tiltyard/protocol";
import { type Location, parseLocation } from "../storage/location.ts";

/** The naming scheme of the manifests of a table (`ManifestNamingScheme` of the protocol). */
export type NamingScheme = "V1" | "V2";

/** The maximum size of a manifest, which contains some hundred bytes for each file of the table. */
export const manifestBytesMax = 256 * 1024 * 1024;
const u64Max = 2n ** 64n - 1n;
const finalSuffix = ".manifest";

/** Returns the folder of the manifests of a branch as a key of the object store. */
export function versionsFolder(location: Location, branch: string): string {
  return `${branchFolder(location, branch)}/_versions`;
}

/** Returns the folder of a branch, which may contain folders of other branches. */
export function branchFolder(location: Location, branch: string): string {
  return branch === mainBranch ? location.path : `${location.path}/tree/${branch}`;
}

/** Returns the key of the file of a branch or a tag. Lance encodes slashes in the names of branches. */
export function refFile({ path }: Location, folder: "_refs/tags" | "_refs/branches", name: string): string {
  return `${path}/${folder}/${encodeURIComponent(name)}.json`;
}

/** Returns an unused key for a temporary copy of a manifest, outside the folder whose files are versions. */
export function newManifestCopy(location: Location, branch: string): string {
  return `${branchFolder(location, branch)}/_checks/${crypto.randomUUID()}${finalSuffix}`;
}

/** Returns the final name of a manifest. V2 names count down so that the latest one is listed first. */
export function manifestName(version: number, scheme: NamingScheme): string {
  if (scheme === "V1") return `${version}${finalSuffix}`;
  return `${(u64Max - BigInt(version)).toString().padStart(20, "0")}${finalSuffix}`;
}

/** Returns the scheme of a final name. V2 names always have twenty digits. */
export function schemeOf(name: string): NamingScheme {
  return /^\d{20}\./.test(name) ? "V2" : "V1";
}

/** Returns the version of a final name; undefined for any other file name. */
export function versionOfManifest(name: string): number | undefined {
  const digits = /^(\d{1,20})\.manifest$/.exec(name)?.[1];
  if (digits === undefined) return undefined;
  const version = digits.length === 20 ? u64Max - BigInt(digits) : BigInt(digits);
  return version >= 0n && version <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(version) : undefined;
}

export interface ManifestNames {
  readonly committedName: string;
  readonly manifestName: string;
}

/**
 * Parses the `manifest_path` of a commit. It must be in the `_versions` folder of the branch, which contains only
 * manifests, and must not be the manifest of another version, because the service copies and deletes the file.
 *
 * @param scheme The scheme of the table. If undefined, it is derived from the path, and V2 is the default.
 * @throws CatalogError InvalidInput
 */
export function readManifestPath(
  manifestPath: string,
  at: { readonly location: Location; readonly branch: string; readonly version: number },
  scheme: NamingScheme | undefined,
): ManifestNames {
  const folder = versionsFolder(at.location, at.branch);
  const path = pathInStore(manifestPath, at.location);
  const committedName = path?.slice(folder.length + 1) ?? "";
  if (path === undefined || !path.startsWith(`${folder}/`) || committedName.includes("/"))
    throw new CatalogError("InvalidInput", `manifest_path: must be a file in ${folder}/`);
  if (!committedName.includes(finalSuffix))
    throw new CatalogError(
      "InvalidInput",
      `manifest_path: must be the name of a manifest, such as ${manifestName(at.version, "V2")}`,
    );

  const v1 = manifestName(at.version, "V1");
  const final = manifestName(at.version, scheme ?? (committedName.startsWith(v1) ? "V1" : "V2"));
  if (committedName.endsWith(finalSuffix) && committedName !== final)
    throw new CatalogError(
      "InvalidInput",
      `manifest_path: a manifest of version ${at.version} is staged, or named ${final}`,
    );
  return { committedName, manifestName: final };
}

/** Parses a path inside the store, with or without a leading slash, or a full URI. */
function pathInStore(manifestPath: string, location: Location): string | undefined {
  if (!manifestPath.includes("://")) {
    const path = manifestPath.replace(/^\//, "");
    return /\p{Cc}|\\|(^|\/)\.{0,2}(\/|$)/u.test(path) ? undefined : path;
  }
  const parsed = parseLocation(manifestPath);
  return parsed.scheme === location.scheme && parsed.bucket === location.bucket ? parsed.path : undefined;
}
