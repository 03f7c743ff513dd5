import type { CommitParts } from "../commits/parts.ts";
import { readManifest, requireVersion } from "../commits/read.ts";
import { mainBranch } from "../domain/branch.ts";
import { columnMetadataOf, type Fragment, fragmentsOf, highestFragmentOf } from "../rows/manifest-file.ts";
import { autoBackfillColumns } from "../rows/virtual-column.ts";
import type { Seen } from "../store/automations.ts";
import type { TableRecord } from "../store/tables.ts";

/** The state of the latest version of `main` for automations. */
export interface TableState extends Seen {
  readonly fragments: readonly Fragment[];
  /** The columns to backfill after new rows. Of the columns that one function fills together, only the first is listed. */
  readonly autoBackfill: readonly string[];
}

/** Returns the state of the latest version. @throws CatalogError TableVersionNotFound, Unsupported */
export async function stateOf(parts: CommitParts, table: TableRecord): Promise<TableState> {
  const latest = await requireVersion(parts, table, mainBranch, undefined);
  const manifest = await readManifest(parts, table, latest);
  return {
    version: latest.version,
    fragment: highestFragmentOf(manifest),
    fragments: fragmentsOf(manifest),
    autoBackfill: autoBackfillColumns(columnMetadataOf(manifest)),
  };
}
