import { parsing, problemsIn, TablePolicy } from "@tiltyard/protocol";
import type { Command } from "commander";
import { stringify } from "yaml";
import { z } from "zod";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { UsageError } from "./exit-codes.ts";
import { readIdentifier } from "./identifier.ts";
import { log, print } from "./output.ts";
import { nameOfFile, readYaml } from "./target.ts";

interface Options extends CatalogOptions {
  readonly file?: string;
}

const Policy = z.strictObject(TablePolicy);
type Policy = z.infer<typeof Policy>;

/** Adds `jobs policy`, whose output is also its input format. */
export function addPolicyCommand(jobs: Command): void {
  addCatalogCommand(
    jobs,
    "policy",
    "show or replace the policy by which the catalog compacts, indexes and cleans up a table",
  )
    .argument("<table>", "the table's identifier, e.g. 'prod$films'")
    .option("-f, --file <file>", "the new policy, as YAML or JSON; - is standard input, {} removes the policy")
    .addHelpText("after", "\nExample:\n  echo 'auto_compact: {small_fragments: 20}' | tiltyard jobs policy films -f -")
    .action(async (table: string, options: Options) => {
      const id = readIdentifier(table);
      const { management } = catalogOf(options);
      if (options.file !== undefined) await management.putTablePolicy({ id, ...parsePolicy(options.file) });
      const { policy, problems, scheduled } = await management.describeTablePolicy({ id });
      print(options, policy, stringify(policy).trimEnd());
      for (const { policy: name, column, next_at_millis } of scheduled)
        log(`${partName(name, column)} opens due jobs next at ${new Date(next_at_millis).toISOString()}`);
      for (const { policy: name, column, problem } of problems)
        log(`${partName(name, column)} opens no jobs: ${problem}`);
    });
}

/** Parses a policy file. @throws UsageError */
function parsePolicy(file: string): Policy {
  const parsed = Policy.safeParse(readYaml(file), parsing);
  if (parsed.success) return parsed.data;
  const problems = problemsIn(parsed.error, "the policy");
  throw new UsageError(`the policy in ${nameOfFile(file)} is not valid:\n  ${problems.join("\n  ")}`);
}

function partName(name: string, column: string | undefined): string {
  return `${name}${column === undefined ? "" : ` of ${column}`}`;
}
