import { CatalogError, type JsonArrowSchema, type RequestOf, type remoteContracts } from "@tiltyard/protocol";

/**
 * The key in the metadata of columns that are refreshed after commits with new rows. Its value is the minimum interval
 * between two refreshes in seconds. Lance's library refuses additional keys with lancedb's own prefix.
 */
const key = "tiltyard.auto_refresh_seconds";

type Metadata = Readonly<Record<string, string>>;

/**
 * Returns the metadata of new columns that a request asks to refresh automatically.
 *
 * @param autoRefresh Enables automatic refreshes in this catalog.
 * @throws CatalogError InvalidInput for an interval without an effect.
 */
export function autoRefreshMetadata(
  {
    auto_refresh_enabled: enabled,
    auto_refresh_interval_seconds: interval,
  }: Partial<RequestOf<typeof remoteContracts.remoteAlterTableAddColumns>>,
  autoRefresh: boolean,
): Metadata {
  if (interval !== undefined && !enabled) throw invalid("needs auto_refresh_enabled");
  if (interval !== undefined && !autoRefresh)
    throw invalid(
      "automatic refreshes are off. Omit it and call refresh_column_async, or ask the operator for TILTYARD_AUTO_REFRESH=on",
    );
  return enabled ? { [key]: String(interval ?? 0) } : {};
}

/** Returns the minimum interval in seconds; undefined if only requests refresh the column. */
export function refreshIntervalOf({ [key]: interval }: Metadata): number | undefined {
  return interval === undefined ? undefined : Number(interval) || 0;
}

/**
 * Returns a schema with the options of columns of SQL expressions under lancedb's own keys. lancedb 0.41 reads their
 * absence as a wish for automatic refreshes.
 */
export function withAutoRefreshOptions(schema: JsonArrowSchema): JsonArrowSchema {
  return {
    ...schema,
    fields: schema.fields.map(({ metadata = {}, ...field }) => {
      const options = metadata.computed_column === "true" ? optionsIn(metadata) : {};
      return Object.keys(metadata).length === 0 ? field : { ...field, metadata: { ...metadata, ...options } };
    }),
  };
}

function optionsIn(metadata: Metadata): Metadata {
  const interval = refreshIntervalOf(metadata);
  return {
    "computed_column.auto_refresh_enabled": String(interval !== undefined),
    ...(interval && { "computed_column.auto_refresh_interval_seconds": String(interval) }),
  };
}

function invalid(detail: string): CatalogError {
  return new CatalogError("InvalidInput", `auto_refresh_interval_seconds: ${detail}`);
}
