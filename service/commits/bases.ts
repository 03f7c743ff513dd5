import { CatalogError, type Identifier } from "@tiltyard/protocol";
import { Manifest } from "../lance/manifest.ts";
import { versionsFolder } from "../lance/version-names.ts";
import { type ZonedColumn, zonedColumnsOf } from "../lance/zones.ts";
import { contains, type Location, parseLocation } from "../storage/location.ts";
import { isReadable } from "../tables/bases.ts";
import type { CommitDeps } from "./deps.ts";
import { parseManifest } from "./read.ts";

export interface ManifestFile {
  readonly location: Location;
  readonly branch: string;
  readonly name: string;
}

/**
 * Checks that the caller may read the folders outside its table that a version has files in, which `readContent`
 * returned. A manifest may name such folders, as that of a shallow clone or of a table with bases does. The catalog and
 * jobs would read those folders for every reader of the table.
 *
 * @param mayRead Reports whether the caller may read the table with this name, which owns such a folder.
 * @throws CatalogError PermissionDenied
 */
export async function requireReadable(
  { store }: Pick<CommitDeps, "store">,
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

/** The content of a version that the catalog needs before the library opens it. */
export interface VersionContent {
  /** The folders outside the table that contain files of the version. */
  readonly foreign: readonly Location[];
  /** The columns that Lance 12 cannot read without `withPlainZones`. */
  readonly zoned: readonly ZonedColumn[];
  /** The version of the format of the table's data files; empty if the manifest does not have it. */
  readonly fileVersion: string;
}

/** Reads a manifest by its name. A missing one has no content. @throws CatalogError InvalidInput, Unsupported */
export async function readContent({ storage }: Pick<CommitDeps, "storage">, { location, branch, name }: ManifestFile) {
  const key = `${versionsFolder(location, branch)}/${name}`;
  const objects = await storage.at(location);
  return parseManifest(
    (bytesMax) => objects.read(key, bytesMax),
    async (found) => {
      const manifest = await parsed(found?.bytes ?? new Uint8Array(), name);
      const { fileVersion } = manifest;
      return { foreign: foreignBasesIn(manifest, location), zoned: zonedColumnsOf(manifest), fileVersion };
    },
  );
}

/** Parses a manifest that a client wrote. @throws CatalogError InvalidInput */
export async function parsed(file: Uint8Array, name: string): Promise<Manifest> {
  try {
    return await Manifest.read(file);
  } catch (cause) {
    throw new CatalogError("InvalidInput", `the manifest ${name} cannot be parsed`, { cause });
  }
}

/** Returns the folders outside its table that a manifest names. */
export function foreignBasesIn({ basePaths }: Manifest, location: Location): readonly Location[] {
  return basePaths.map((path) => parseLocation(path)).filter((base) => !contains(location, base));
}
