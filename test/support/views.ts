const prefix = "geneva::view::";

/** Returns the metadata of a schema by which Geneva itself defines a view. */
export function viewMetadata(source: readonly string[], query = "{}"): Record<string, string> {
  return {
    [`${prefix}query`]: query,
    [`${prefix}base_table`]: source.at(-1) ?? "",
    [`${prefix}base_table_db_uri`]: "namespace://",
    [`${prefix}namespace_path`]: source.slice(0, -1).join("$"),
    [`${prefix}base_table_version`]: "1",
    [`${prefix}version`]: "1",
  };
}
