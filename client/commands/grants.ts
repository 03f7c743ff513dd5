import { type Role, roles } from "@tiltyard/protocol";
import { Argument, Command } from "commander";
import type { CatalogClient } from "../catalog/documented-operations.ts";
import { CatalogRequestError } from "../catalog/errors.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { readIdentifier, showIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { log, print, printTable } from "./output.ts";

/** Creates the command `grants`, which adds, lists and removes roles of principals on namespaces. */
export function grantsCommand(): Command {
  const grants = new Command("grants").description("grant, list and revoke roles on namespaces of the catalog");

  addCatalogCommand(grants, "add", "grant a principal a role on a namespace and its descendants")
    .argument("<principal>", "the owner of an API key, or the subject of a token")
    .addArgument(new Argument("<role>", "the role").choices(roles))
    .argument("[namespace]", "the root namespace when absent", "$")
    .addHelpText("after", "\nExample:\n  tiltyard grants add alice@example.com writer prod")
    .action(async (principal: string, role: Role, namespace: string, options: CatalogOptions) => {
      const { catalog, management } = catalogOf(options);
      const id = readIdentifier(namespace);
      await management.putGrant({ id, principal, role });
      await warnIfMissing(catalog, namespace);
      print(options, { principal, role, namespace }, `${principal} is ${role} of ${namespace}`);
    });

  addCatalogCommand(grants, "list", "list principals with their roles and namespaces")
    .argument("[namespace]", "only roles on this namespace and its descendants", "$")
    .action(async (namespace: string, options: CatalogOptions) => {
      const { management } = catalogOf(options);
      const found = await listed(management.listGrants, { id: readIdentifier(namespace) }, ({ grants }) => grants);
      const rows = found.map((grant) => ({ ...grant, namespace: showIdentifier(grant.namespace) }));
      printTable(options, rows, ["principal", "namespace", "role"]);
    });

  addCatalogCommand(grants, "remove", "revoke the role of a principal on a namespace")
    .argument("<principal>")
    .argument("[namespace]", "the root namespace when absent", "$")
    .action(async (principal: string, namespace: string, options: CatalogOptions) => {
      await catalogOf(options).management.revokeGrant({ id: readIdentifier(namespace), principal });
      print(options, { principal, namespace, removed: true }, `${principal} has no role on ${namespace} any more`);
    });

  return grants;
}

/** Warns about a namespace that does not exist, because a role on it may be a typing error. */
export async function warnIfMissing(catalog: CatalogClient, namespace: string): Promise<void> {
  try {
    await catalog.namespaceExists({ id: readIdentifier(namespace) });
  } catch (error) {
    if (!(error instanceof CatalogRequestError && error.status === 404)) throw error;
    log(`warning: the namespace ${namespace} does not exist yet`);
  }
}
