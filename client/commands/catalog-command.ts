import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import {
  type CatalogClient,
  createCatalogClient,
  createManagementClient,
  type ManagementClient,
} from "../catalog/catalog-client.ts";
import { type JsonOption, jsonOption } from "./output.ts";
import { type CatalogTarget, httpUrl } from "./target.ts";

export interface CatalogOptions extends JsonOption {
  readonly url?: string;
  readonly catalog?: string;
}

/** A catalog with the setting that named it. */
interface NamedCatalog extends CatalogTarget {
  readonly from: string;
}

/** Adds a command that sends requests to the catalog. */
export function addCatalogCommand(to: Command, name: string, description: string): Command {
  return to
    .command(name)
    .description(description)
    .option("--url <url>", "the catalog; default: TILTYARD_CATALOG_URL, else the catalog of this machine")
    .addOption(new Option("--catalog <url>", "the former name of --url").hideHelp().conflicts("url"))
    .addOption(jsonOption());
}

/** Returns the catalog that a command uses. @throws UsageError for an invalid URL. */
export function requiredCatalog(options: CatalogOptions): NamedCatalog {
  const { TILTYARD_CATALOG_URL, TILTYARD_API_KEY, TILTYARD_PORT } = process.env;
  const option = options.url ?? options.catalog;
  const from =
    (option !== undefined && "the option --url") || (TILTYARD_CATALOG_URL && "TILTYARD_CATALOG_URL") || "the default";
  const url = option ?? (TILTYARD_CATALOG_URL || `http://127.0.0.1:${TILTYARD_PORT || 2333}`);
  return { url: httpUrl(url, "the catalog"), apiKey: TILTYARD_API_KEY || developmentKeyFor(url), from };
}

/** Returns clients of the catalog that a command uses, and names the catalog on standard error. */
export function catalogOf(options: CatalogOptions): {
  readonly catalog: CatalogClient;
  readonly management: ManagementClient;
} {
  const { from, ...target } = requiredCatalog(options);
  process.stderr.write(`catalog: ${target.url} (from ${from})\n`);
  return { catalog: createCatalogClient(target), management: createManagementClient(target) };
}

/** @throws UsageError */
export function managementOf(options: CatalogOptions): ManagementClient {
  return createManagementClient(requiredCatalog(options));
}

/** Returns the development key of this folder's data directory, for a catalog on the loopback address only. */
function developmentKeyFor(url: string): string | undefined {
  const host = URL.parse(url)?.hostname ?? "";
  const file = join(process.env.TILTYARD_DATA_DIR || "data", "development.key");
  const isUsable = ["127.0.0.1", "localhost", "[::1]"].includes(host) && existsSync(file);
  return isUsable ? readFileSync(file, "utf8").trim() : undefined;
}
