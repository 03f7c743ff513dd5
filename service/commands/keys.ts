import { type Identifier, parseIdentifier, type Role, roles } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { createApiKey, revokeApiKey } from "../domain/principals.ts";
import { operator } from "../domain/transaction.ts";
import { listApiKeys } from "../store/api-keys.ts";
import { addLocalCommand, type LocalOptions, withDatabase } from "./local-database.ts";
import { print, printTable } from "./output.ts";

interface CreateOptions extends LocalOptions {
  readonly role?: Role;
  readonly namespace: string;
}

/** Creates the command `keys`, which creates, lists and revokes API keys. */
export function keysCommand(): Command {
  const keys = new Command("keys").description("create, list and revoke API keys");

  addLocalCommand(keys, "create", "create a key for a principal and print it once")
    .argument("<principal>", "the principal of requests with the key")
    .addOption(new Option("--role <role>", "also grant the principal this role").choices(roles))
    .option("--namespace <id>", "the namespace of the role, with its descendants", "$")
    .addHelpText("after", "\nExample:\n  tiltyard-catalog keys create backfill --role writer --namespace prod")
    .action(async (principal: string, options: CreateOptions) => {
      const namespace: Identifier = parseIdentifier(options.namespace);
      const grant = options.role && { namespace, role: options.role };
      const { id, key } = await withDatabase(options, (store) =>
        store.write((session) => createApiKey(session, operator, principal, grant)),
      );
      print(options, { id, principal, key }, key);
    });

  addLocalCommand(keys, "list", "list the keys, without their secrets").action(async (options: LocalOptions) => {
    const found = await withDatabase(options, (store) => listApiKeys(store.read));
    printTable(
      options,
      found.map(({ createdAtMillis, ...key }) => ({ ...key, created: new Date(createdAtMillis).toISOString() })),
    );
  });

  addLocalCommand(keys, "revoke", "revoke a key")
    .argument("<id>", "the key's id, as `keys list` shows it")
    .action(async (id: string, options: LocalOptions) => {
      await withDatabase(options, (store) => store.write((session) => revokeApiKey(session, operator, id)));
      print(options, { id, revoked: true }, `revoked ${id}`);
    });

  return keys;
}
