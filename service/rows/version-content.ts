import { foreignBasesIn, type ManifestFile, readManifestFile } from "../commits/bases.ts";
import type { CommitParts } from "../commits/parts.ts";
import { type ZonedColumn, zonedColumnsIn } from "../lance/zones.ts";
import type { Location } from "../storage/location.ts";

/** The content of a manifest that the catalog needs before the library opens the version. */
export interface VersionContent {
  /** The folders outside the table that contain files of the version. */
  readonly foreign: readonly Location[];
  /** The columns that Lance 12 cannot read without `withPlainZones`. */
  readonly zoned: readonly ZonedColumn[];
}

/** @throws CatalogError InvalidInput for a manifest that cannot be parsed. */
export function readContent(parts: Pick<CommitParts, "storage">, manifest: ManifestFile): Promise<VersionContent> {
  return readManifestFile(parts, manifest, (bytes) =>
    bytes === undefined
      ? { foreign: [], zoned: [] }
      : { foreign: foreignBasesIn(bytes, manifest), zoned: zonedColumnsIn(bytes) },
  );
}
