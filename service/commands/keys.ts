import { type Identifier, parseIdentifier, type Role, roles } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { generateApiKey, hashApiKey } from "../auth/api-key.ts";
import { deleteApiKey, listApiKeys, putApiKey, putGrant } from "../store/principals.ts";
import { type JsonOption, jsonOption, print, printTable } from "./output.ts";
import { withStore } from "./with-store.ts";

interface CreateOptions extends JsonOption {
  readonly role?: Role;
  readonly namespace: string;
}

/** `keys`: make, list and revoke API keys. */
export function keysCommand(): Command {
  const keys = new Command("keys").description("make, list and revoke API keys");

  keys
    .command("create")
    .description("make a key for a principal and print it; it cannot be shown again")
    .argument("<principal>", "whom requests with the key come from")
    .addOption(new Option("--role <role>", "also give the principal this role").choices(roles))
    .option("--namespace <id>", "where the role is given; everything under it is included", "$")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  tiltyard-catalog keys create backfill --role writer --namespace prod")
    .action(async (principal: string, options: CreateOptions) => {
      const namespace: Identifier = parseIdentifier(options.namespace);
      const { id, key } = generateApiKey();
      await withStore((store) =>
        store.write(async (session) => {
          await putApiKey(session, id, principal, hashApiKey(key));
          if (options.role !== undefined) await putGrant(session, principal, { namespace, role: options.role });
        }),
      );
      print(options, { id, principal, key }, key);
    });

  keys
    .command("list")
    .description("list the keys, without what is secret in them")
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
    .description("make a key worthless from now on")
    .argument("<id>", "the key's id, as `keys list` shows it")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonOption) => {
      const revoked = await withStore((store) => store.write((session) => deleteApiKey(session, id)));
      if (!revoked) throw new Error(`there is no key ${id}; see: tiltyard-catalog keys list`);
      print(options, { id, revoked }, `revoked ${id}`);
    });

  return keys;
}
