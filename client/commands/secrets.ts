import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { Command } from "commander";
import { CatalogRequestError } from "../catalog/errors.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { UsageError } from "./exit-codes.ts";
import { readIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { print, printTable, timeOf } from "./output.ts";
import { reading } from "./target.ts";

interface ValueOptions extends CatalogOptions {
  readonly fromFile?: string;
}

/** Creates the command `secrets`, which lists, creates, alters and drops the secrets of Functions. */
export function secretsCommand(): Command {
  const secrets = new Command("secrets").description("list, create, alter and drop the secrets of Functions");

  addCatalogCommand(secrets, "list", "list the secrets of a namespace, without their values")
    .argument("[namespace]", "the root namespace when absent", "$")
    .action(async (namespace: string, options: CatalogOptions) => {
      const { catalog } = catalogOf(options);
      const id = readIdentifier(namespace);
      const rows = [];
      for (const { name } of await listed(catalog.listSecrets, { id }, (page) => page.secrets)) {
        const found = await catalog.describeSecret({ id: [...id, name] }).catch((error) => {
          // Another caller has dropped the secret meanwhile.
          if (error instanceof CatalogRequestError && error.status === 404) return undefined;
          throw error;
        });
        if (found === undefined) continue;
        const { created_at_millis, updated_at_millis } = found;
        rows.push({ secret: name, created: timeOf(created_at_millis), updated: timeOf(updated_at_millis) });
      }
      printTable(options, rows, ["secret", "created", "updated"]);
    });

  for (const [name, description, done] of [
    ["create", "create a secret with a value from a file or from standard input", "created"],
    ["alter", "replace the value of a secret, which the next jobs use", "altered"],
  ] as const)
    addCatalogCommand(secrets, name, description)
      .argument("<secret>", "the identifier, e.g. 'prod$api-token'")
      .option("--from-file <path>", "the file with the value; standard input when absent")
      .addHelpText(
        "after",
        `
A line break at the end does not belong to the value. An argument with the value would be visible to other processes.

Example:
  tiltyard secrets ${name} 'prod$api-token' < token`,
      )
      .action(async (secret: string, options: ValueOptions) => {
        const value = await readValue(options);
        const { catalog } = catalogOf(options);
        await catalog[`${name}Secret`]({ id: readIdentifier(secret), value });
        print(options, { secret, [done]: true }, `${done} ${secret}`);
      });

  addCatalogCommand(secrets, "drop", "drop a secret; the next jobs of Functions that use it fail")
    .argument("<secret>", "the identifier, e.g. 'prod$api-token'")
    .action(async (secret: string, options: CatalogOptions) => {
      await catalogOf(options).catalog.dropSecret({ id: readIdentifier(secret) });
      print(options, { secret, dropped: true }, `dropped ${secret}`);
    });

  return secrets;
}

/** Returns the value without one line break at its end, which editors and `echo` add. */
async function readValue({ fromFile }: ValueOptions): Promise<string> {
  if (fromFile === undefined && process.stdin.isTTY)
    throw new UsageError("The value is missing. Write it to standard input, or name its file: --from-file PATH");
  const given = fromFile === undefined ? await buffer(process.stdin) : reading(fromFile, () => readFileSync(fromFile));
  const value = textOf(given).replace(/\r?\n$/, "");
  if (value === "") throw new UsageError("The value is empty");
  return value;
}

/** Decodes UTF-8 without the byte order mark of editors on Windows. @throws UsageError for other bytes. */
function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new UsageError("The value is not text in UTF-8, which secrets must be", { cause: error });
  }
}
