import { readFileSync } from "node:fs";

const { optionalDependencies } = JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8")) as {
  readonly optionalDependencies: Readonly<Record<string, string>>;
};

/** The package with Lance's library, and its version. */
export const lanceLibrary = `@lancedb/lancedb ${optionalDependencies["@lancedb/lancedb"]?.replace(/^\D+/, "")}`;
