import type { CommitParts } from "../commits/parts.ts";
import type { Change } from "../commits/series.ts";
import type { Locations } from "../domain/locations.ts";
import { requireFreeName } from "../domain/require.ts";
import type { Changed, ChangeOptions } from "./change.ts";
import type { Rows } from "./rows.ts";

export interface CreatedTable {
  readonly location: string;
  readonly version: number;
  readonly transaction: Changed<unknown>["transaction"];
}

/**
 * Creates a table from an Arrow stream at a location that the catalog chooses. The table and its rows are one commit.
 *
 * @param change The change, whose properties become those of the table.
 * @throws CatalogError NamespaceNotFound, TableAlreadyExists, Unsupported; also like a write.
 */
export async function createTableWithRows(
  catalog: Pick<CommitParts, "store" | "storage"> & { readonly locations: Locations; readonly rows: Rows },
  change: Change,
  rows: ReadableStream<Uint8Array>,
  { stableRowIds = false }: Pick<ChangeOptions, "stableRowIds"> = {},
): Promise<CreatedTable> {
  const { id } = change.request;
  await requireFreeName(catalog.store.read, id);
  const location = catalog.locations.choose(id);
  const empty = { location: location.uri, properties: change.properties ?? {} };
  // No other client knows this location.
  const onNothingCommitted = async () => (await catalog.storage.at(location)).deleteFolder(location.path);
  const options = { rows, empty, stableRowIds, onNothingCommitted };
  const { result, transaction } = await catalog.rows.change("write", change, { mode: "append" }, options);
  return { location: location.uri, version: result.version, transaction };
}
