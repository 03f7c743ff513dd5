import { parseIdentifier, type Role, roles } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { pages } from "../catalog/pages.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { addLocalOption } from "./local.ts";
import { print, printTable } from "./output.ts";

interface CreateOptions extends CatalogOptions {
  readonly role?: Role;
  readonly namespace: string;
}

/** Creates the command `keys`, which creates, lists and revokes API keys. */
export function keysCommand(): Command {
  const keys = new Command("keys").description("create, list and revoke API keys of the catalog");

  addLocalOption(addCatalogCommand(keys, "create", "create a key for a principal and print it once"))
    .argument("<principal>", "the principal of requests with the key")
    .addOption(new Option("--role <role>", "also grant the principal this role").choices(roles))
    .option("--namespace <id>", "the namespace of the role, with its descendants", "$")
    .addHelpText("after", "\nExample:\n  tiltyard keys create backfill --role writer --namespace prod")
    .action(async (principal: string, options: CreateOptions) => {
      const grant = options.role && { namespace: [...parseIdentifier(options.namespace)], role: options.role };
      const { api_key_id: id, key } = await catalogOf(options).management.createApiKey({
        principal,
        ...(grant && { grant }),
      });
      print(options, { id, principal, key }, key);
    });

  addLocalOption(addCatalogCommand(keys, "list", "list the keys, without their secrets")).action(
    async (options: CatalogOptions) => {
      const { management } = catalogOf(options);
      const rows = [];
      for await (const { api_keys } of pages(management.listApiKeys, {}))
        for (const { api_key_id: id, principal, created_at_millis } of api_keys)
          rows.push({ id, principal, created: new Date(created_at_millis).toISOString() });
      printTable(options, rows, ["id", "principal", "created"]);
    },
  );

  addLocalOption(addCatalogCommand(keys, "revoke", "revoke a key"))
    .argument("<id>", "the key's id, as `keys list` shows it")
    .action(async (id: string, options: CatalogOptions) => {
      await catalogOf(options).management.revokeApiKey({ api_key_id: id });
      print(options, { id, revoked: true }, `revoked ${id}`);
    });

  return keys;
}
