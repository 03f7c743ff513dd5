import { type Role, roles } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { warnIfMissing } from "./grants.ts";
import { readIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { print, printTable, timeOf } from "./output.ts";

interface CreateOptions extends CatalogOptions {
  readonly role?: Role;
  readonly namespace: string;
}

/** Creates the command `keys`, which creates, lists and revokes API keys. */
export function keysCommand(): Command {
  const keys = new Command("keys").description("create, list and revoke API keys of the catalog");

  addCatalogCommand(keys, "create", "create a key for a principal and print it once")
    .argument("<principal>", "the principal of requests with the key")
    .addOption(new Option("--role <role>", "also grant the principal this role").choices(roles))
    .option("--namespace <id>", "the namespace of the role, with its descendants", "$")
    .addHelpText("after", "\nExample:\n  tiltyard keys create backfill --role writer --namespace prod")
    .action(async (principal: string, options: CreateOptions) => {
      const grant = options.role && { namespace: [...readIdentifier(options.namespace)], role: options.role };
      const { catalog, management } = catalogOf(options);
      const { api_key_id: id, key } = await management.createApiKey({ principal, ...(grant && { grant }) });
      print(options, { id, principal, key }, key);
      if (grant) await warnIfMissing(catalog, options.namespace);
    });

  addCatalogCommand(keys, "list", "list the keys, without their secrets").action(async (options: CatalogOptions) => {
    const { management } = catalogOf(options);
    const found = await listed(management.listApiKeys, {}, ({ api_keys }) => api_keys);
    const rows = found.map(({ api_key_id: id, principal, created_at_millis }) => ({
      ...{ id, principal },
      created: timeOf(created_at_millis),
    }));
    printTable(options, rows, ["id", "principal", "created"]);
  });

  addCatalogCommand(keys, "revoke", "revoke a key")
    .argument("<id>", "the key's id, as `keys list` shows it")
    .action(async (id: string, options: CatalogOptions) => {
      await catalogOf(options).management.revokeApiKey({ api_key_id: id });
      print(options, { id, revoked: true }, `revoked ${id}`);
    });

  return keys;
}
