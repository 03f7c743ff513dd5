import { type Command, Option } from "commander";
import { createCatalogClient, createManagementClient } from "../catalog/catalog-client.ts";
import type { CatalogClient, ManagementClient } from "../catalog/documented-operations.ts";
import { type CatalogTargetOptions, requiredCatalog } from "./catalog-target.ts";
import { type JsonOption, jsonOption, log } from "./output.ts";

export type CatalogOptions = JsonOption & CatalogTargetOptions;

/** Adds a command that sends requests to the catalog. */
export function addCatalogCommand(to: Command, name: string, description: string): Command {
  return to
    .command(name)
    .description(description)
    .option("--url <url>", "the catalog; default: TILTYARD_CATALOG_URL, the default profile, the one of this machine")
    .addOption(new Option("--profile <name>", "a catalog stored by `tiltyard login`").conflicts("url"))
    .addOption(jsonOption());
}

/** The clients of a catalog. */
export interface Clients {
  readonly catalog: CatalogClient;
  readonly management: ManagementClient;
}

/** Creates clients of the catalog for a command and prints the name of the catalog. @throws UsageError */
export function catalogOf(options: CatalogOptions): Clients {
  const { from, ...target } = requiredCatalog(options);
  log(`catalog: ${target.url} (from ${from})`);
  return { catalog: createCatalogClient(target), management: createManagementClient(target) };
}
