import { formatIdentifier, parseIdentifier, type Role, roles } from "@tiltyard/protocol";
import { Argument, Command } from "commander";
import { putGrant, revokeGrant } from "../domain/principals.ts";
import { operator } from "../domain/transaction.ts";
import { listGrants } from "../store/grants.ts";
import { findNamespace } from "../store/namespaces.ts";
import { addLocalCommand, type LocalOptions, withDatabase } from "./local-database.ts";
import { print, printTable } from "./output.ts";

/** Creates the command `grants`, which adds, lists and removes roles of principals on namespaces. */
export function grantsCommand(): Command {
  const grants = new Command("grants").description("grant, list and revoke roles of principals on namespaces");

  addLocalCommand(grants, "add", "grant a principal a role on a namespace and its descendants")
    .argument("<principal>", "the owner of an API key, or the subject of a token")
    .addArgument(new Argument("<role>", "the role").choices(roles))
    .argument("[namespace]", "the root namespace when absent", "$")
    .addHelpText("after", "\nExample:\n  tiltyard-catalog grants add alice@example.com writer prod")
    .action(async (principal: string, role: Role, namespace: string, options: LocalOptions) => {
      const grant = { namespace: parseIdentifier(namespace), role };
      const exists = await withDatabase(options, async (store) => {
        await store.write((session) => putGrant(session, operator, principal, grant));
        return (await findNamespace(store.read, grant.namespace)) !== undefined;
      });
      if (!exists) process.stderr.write(`warning: the namespace ${namespace} does not exist yet\n`);
      print(options, { principal, role, namespace }, `${principal} is ${role} of ${namespace}`);
    });

  addLocalCommand(grants, "list", "list principals with their roles and namespaces")
    .argument("[namespace]", "only roles on this namespace and its descendants", "$")
    .action(async (namespace: string, options: LocalOptions) => {
      const within = parseIdentifier(namespace);
      const found = await withDatabase(options, (store) => listGrants(store.read, within));
      printTable(
        options,
        found.map((grant) => ({ ...grant, namespace: formatIdentifier(grant.namespace) })),
      );
    });

  addLocalCommand(grants, "remove", "revoke the role of a principal on a namespace")
    .argument("<principal>")
    .argument("[namespace]", "the root namespace when absent", "$")
    .action(async (principal: string, namespace: string, options: LocalOptions) => {
      const identifier = parseIdentifier(namespace);
      await withDatabase(options, (store) =>
        store.write((session) => revokeGrant(session, operator, principal, identifier)),
      );
      print(options, { principal, namespace, removed: true }, `${principal} has no role on ${namespace} any more`);
    });

  return grants;
}
