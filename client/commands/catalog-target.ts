import { existsSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "./exit-codes.ts";
import { defaultProfile, findProfile } from "./profiles.ts";
import { httpUrl, readText } from "./target.ts";

/** The URL of a catalog and its key. */
export interface CatalogTarget {
  readonly url: string;
  readonly apiKey: string | undefined;
}

/** A catalog with the setting that specified it. */
export interface NamedCatalog extends CatalogTarget {
  readonly from: string;
}

/** The options that specify a catalog. None contains a key, because other users of the machine can see command lines. */
export interface CatalogTargetOptions {
  readonly url?: string;
  readonly profile?: string;
}

/**
 * Returns the catalog that the options or TILTYARD_CATALOG_URL specify; undefined without any. An empty variable counts
 * as absent.
 *
 * @throws UsageError for an invalid URL and an unknown profile.
 */
export function catalogTarget({ url, profile }: CatalogTargetOptions): NamedCatalog | undefined {
  if (url !== undefined) return named(url, "the option --url");
  if (profile !== undefined) {
    const found = ofProfile(profile);
    if (found === undefined)
      throw new UsageError(
        `The profile ${profile} does not exist. Create it with: tiltyard login URL --profile ${profile}`,
      );
    return found;
  }
  const { TILTYARD_CATALOG_URL } = process.env;
  return TILTYARD_CATALOG_URL ? named(TILTYARD_CATALOG_URL, "TILTYARD_CATALOG_URL") : undefined;
}

/** Returns the catalog of a command: the specified one, that of the default profile, or the one on this machine. */
export function requiredCatalog(options: CatalogTargetOptions): NamedCatalog {
  const port = process.env.TILTYARD_PORT || 2333;
  return catalogTarget(options) ?? ofProfile(defaultProfile) ?? named(`http://127.0.0.1:${port}`, "the default");
}

function named(url: string, from: string): NamedCatalog {
  const apiKey = process.env.TILTYARD_API_KEY || developmentKeyFor(url);
  return { url: httpUrl(url, "the catalog"), apiKey, from };
}

function ofProfile(name: string): NamedCatalog | undefined {
  const profile = findProfile(name);
  return (
    profile && { url: httpUrl(profile.url, `the profile ${name}`), apiKey: profile.apiKey, from: `the profile ${name}` }
  );
}

/** Returns the development key of the data directory, but only for a catalog at a loopback address. */
export function developmentKeyFor(url: string): string | undefined {
  const host = URL.parse(url)?.hostname ?? "";
  const file = join(process.env.TILTYARD_DATA_DIR || "data", "development.key");
  const isUsable = ["127.0.0.1", "localhost", "[::1]"].includes(host) && existsSync(file);
  return isUsable ? readText(file).trim() : undefined;
}
