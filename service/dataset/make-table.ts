import { CatalogError } from "@tiltyard/protocol";
import type { Change } from "../commits/series.ts";
import type { Locations } from "../domain/locations.ts";
import { requireFreeName } from "../domain/require.ts";
import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { Datasets, TableOptions } from "./datasets.ts";
import { writeRows } from "./write-rows.ts";

export interface MadeTable {
  readonly location: string;
  readonly version: number;
  readonly transactionName: string | undefined;
}

/**
 * Makes a table from an Arrow stream, where the catalog chooses. It comes into being together with its rows.
 *
 * @param change Its properties are the table's.
 * @throws CatalogError NamespaceNotFound, TableAlreadyExists, Unsupported, and what `writeRows` throws.
 */
export async function makeTable(
  catalog: {
    readonly store: Store;
    readonly storage: Storage;
    readonly locations: Locations;
    readonly datasets: Datasets;
  },
  change: Change,
  rows: ReadableStream<Uint8Array>,
  options: TableOptions = {},
): Promise<MadeTable> {
  const { store, storage, locations, datasets } = catalog;
  const { id } = change.request;
  await requireFreeName(store.read, id);
  const location = locations.choose(id);
  const table = { location: location.uri, properties: change.properties ?? {} };
  await using dataset = await datasets.openEmpty(change, table, options);
  const { commits } = dataset;
  try {
    const { version } = await writeRows(dataset, rows, "append");
    return { location: location.uri, version, transactionName: commits.transactionName };
  } catch (error) {
    // No other client knows this location, unless the commit is there: its answer may have been lost.
    const isRefused = error instanceof CatalogError && error.kind !== "ServiceUnavailable";
    if (commits.transactionName === undefined && isRefused)
      await (await storage.at(location)).deleteFolder(location.path);
    throw error;
  }
}
