import type { Command } from "commander";
import { createManagementClient, type ManagementClient } from "../catalog/catalog-client.ts";
import { UsageError } from "./exit-codes.ts";
import { type JsonOption, jsonOption } from "./output.ts";
import { type CatalogTarget, catalogTarget } from "./target.ts";

export interface CatalogOptions extends JsonOption {
  readonly catalog?: string;
}

/** A command that asks the catalog. */
export function addCatalogCommand(to: Command, name: string, description: string): Command {
  return to
    .command(name)
    .description(description)
    .option("--catalog <url>", "the catalog; or TILTYARD_CATALOG_URL. Its key: TILTYARD_API_KEY")
    .addOption(jsonOption());
}

/** @throws UsageError */
export function requiredCatalog(options: CatalogOptions): CatalogTarget {
  const target = catalogTarget(options);
  if (target === undefined) throw new UsageError("name the catalog: --catalog URL, or TILTYARD_CATALOG_URL");
  return target;
}

/** @throws UsageError */
export function managementOf(options: CatalogOptions): ManagementClient {
  return createManagementClient(requiredCatalog(options));
}
