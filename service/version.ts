import { readFileSync } from "node:fs";

const { version, optionalDependencies } = JSON.parse(
  readFileSync(new URL("./package.json", import.meta.url), "utf8"),
) as { readonly version: string; readonly optionalDependencies: Readonly<Record<string, string>> };

/** The version of the catalog. */
export { version };
/** The package with Lance's library, and its version. */
export const lanceLibrary = `@lancedb/lancedb ${optionalDependencies["@lancedb/lancedb"]?.replace(/^\D+/, "")}`;
