import { formatIdentifier, parseIdentifier, type Role, roles } from "@tiltyard/protocol";
import { Argument, Command } from "commander";
import { operator } from "../domain/audit.ts";
import { putGrant, revokeGrant } from "../domain/principals.ts";
import { listGrants } from "../store/principals.ts";
import { type JsonOption, jsonOption, print, printTable } from "./output.ts";
import { withStore } from "./with-store.ts";

/** `grants`: add, list and remove roles of principals on namespaces. */
export function grantsCommand(): Command {
  const grants = new Command("grants").description("grant, list and revoke roles of principals on namespaces");

  grants
    .command("add")
    .description("grant a principal a role on a namespace and its descendants")
    .argument("<principal>", "the owner of an API key, or the subject of a token")
    .addArgument(new Argument("<role>", "the role").choices(roles))
    .argument("[namespace]", "the root namespace when absent", "$")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  tiltyard-catalog grants add alice@example.com writer prod")
    .action(async (principal: string, role: Role, namespace: string, options: JsonOption) => {
      const grant = { namespace: parseIdentifier(namespace), role };
      await withStore((store) => store.write((session) => putGrant(session, operator, principal, grant)));
      print(options, { principal, role, namespace }, `${principal} is ${role} of ${namespace}`);
    });

  grants
    .command("list")
    .description("list principals with their roles and namespaces")
    .addOption(jsonOption())
    .action(async (options: JsonOption) => {
      const found = await withStore((store) => listGrants(store.read));
      printTable(
        options,
        found.map((grant) => ({ ...grant, namespace: formatIdentifier(grant.namespace) })),
      );
    });

  grants
    .command("remove")
    .description("revoke the role of a principal on a namespace")
    .argument("<principal>")
    .argument("[namespace]", "the root namespace when absent", "$")
    .addOption(jsonOption())
    .action(async (principal: string, namespace: string, options: JsonOption) => {
      const identifier = parseIdentifier(namespace);
      await withStore((store) => store.write((session) => revokeGrant(session, operator, principal, identifier)));
      print(options, { principal, namespace, removed: true }, `${principal} has no role on ${namespace} any more`);
    });

  return grants;
}
