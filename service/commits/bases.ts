import { CatalogError, type Identifier } from "@tiltyard/protocol";
import { basePathsOf, isLanceFile } from "../lance/manifest.ts";
import { versionsFolder } from "../lance/version-names.ts";
import { contains, type Location, parseLocation } from "../storage/location.ts";
import { isReadable } from "../tables/bases.ts";
import type { CommitParts } from "./parts.ts";
import { parseManifest } from "./read.ts";

export interface ManifestFile {
  readonly location: Location;
  readonly branch: string;
  readonly name: string;
}

/**
 * Checks that the caller may read the folders outside its table that a version has files in, which `foreignBasesOf`
 * returned. A manifest may name such folders, as that of a shallow clone or of a table with bases does. The catalog and
 * jobs would read those folders for every reader of the table.
 *
 * @param mayRead Reports whether the caller may read the table with this name, which owns such a folder.
 * @throws CatalogError PermissionDenied
 */
export async function requireReadable(
  { store }: Pick<CommitParts, "store">,
  bases: readonly Location[],
  mayRead: (table: Identifier) => boolean,
): Promise<void> {
  for (const base of bases)
    if (!(await isReadable(store.read, base, mayRead)))
      throw new CatalogError(
        "PermissionDenied",
        `the version has files in ${base.uri}, which belong neither to the table nor to a table that you may read`,
      );
}

/** Returns the folders outside its table that a manifest names. @throws CatalogError InvalidInput */
export async function foreignBasesOf(
  parts: Pick<CommitParts, "storage">,
  file: ManifestFile,
): Promise<readonly Location[]> {
  return readManifestFile(parts, file, (bytes) => (bytes === undefined ? [] : foreignBasesIn(bytes, file)));
}

/** Reads a manifest by its name. @param parse Is like that of `parseManifest`; its argument is undefined without the file. */
export async function readManifestFile<Result>(
  { storage }: Pick<CommitParts, "storage">,
  { location, branch, name }: ManifestFile,
  parse: (manifest: Uint8Array | undefined) => Result | Promise<Result>,
): Promise<Result> {
  const key = `${versionsFolder(location, branch)}/${name}`;
  const objects = await storage.at(location);
  return parseManifest(
    (bytesMax) => objects.read(key, bytesMax),
    (found) => parse(found?.bytes),
  );
}

/** Returns the folders outside its table that the content of a manifest names, like `foreignBasesOf`. */
export function foreignBasesIn(bytes: Uint8Array, { location, name }: Pick<ManifestFile, "location" | "name">) {
  const bases = pathsIn(bytes, name).map((path) => parseLocation(path));
  return bases.filter((base) => !contains(location, base));
}

function pathsIn(file: Uint8Array, name: string): readonly string[] {
  if (!isLanceFile(file)) return [];
  try {
    return basePathsOf(file);
  } catch (cause) {
    throw new CatalogError("InvalidInput", `the manifest ${name} cannot be parsed`, { cause });
  }
}
