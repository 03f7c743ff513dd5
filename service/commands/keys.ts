import { type Identifier, parseIdentifier, type Role, roles } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { operator } from "../domain/audit.ts";
import { createApiKey, revokeApiKey } from "../domain/principals.ts";
import { listApiKeys } from "../store/principals.ts";
import { type JsonOption, jsonOption, print, printTable } from "./output.ts";
import { withStore } from "./with-store.ts";

interface CreateOptions extends JsonOption {
  readonly role?: Role;
  readonly namespace: string;
}

/** `keys`: create, list and revoke API keys. */
export function keysCommand(): Command {
  const keys = new Command("keys").description("create, list and revoke API keys");

  keys
    .command("create")
    .description("create a key for a principal and print it; it cannot be shown again")
    .argument("<principal>", "the principal of requests with the key")
    .addOption(new Option("--role <role>", "also grant the principal this role").choices(roles))
    .option("--namespace <id>", "the namespace of the role, with its descendants", "$")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  tiltyard-catalog keys create backfill --role writer --namespace prod")
    .action(async (principal: string, options: CreateOptions) => {
      const namespace: Identifier = parseIdentifier(options.namespace);
      const grant = options.role && { namespace, role: options.role };
      const { id, key } = await withStore((store) =>
        store.write((session) => createApiKey(session, operator, principal, grant)),
      );
      print(options, { id, principal, key }, key);
    });

  keys
    .command("list")
    .description("list the keys, without their secrets")
    .addOption(jsonOption())
    .action(async (options: JsonOption) => {
      const found = await withStore((store) => listApiKeys(store.read));
      printTable(
        options,
        found.map(({ createdAtMillis, ...key }) => ({ ...key, created: new Date(createdAtMillis).toISOString() })),
      );
    });

  keys
    .command("revoke")
    .description("revoke a key")
    .argument("<id>", "the key's id, as `keys list` shows it")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonOption) => {
      await withStore((store) => store.write((session) => revokeApiKey(session, operator, id)));
      print(options, { id, revoked: true }, `revoked ${id}`);
    });

  return keys;
}
