import { readFileSync } from "node:fs";
import { codeOf, documentationPage, formatError, ownValue } from "@tiltyard/protocol";
import { Command, CommanderError } from "commander";
import { backupCommand, restoreCommand } from "./commands/backup.ts";
import { checkWarehouseCommand } from "./commands/check-warehouse.ts";
import { moveCommand } from "./commands/move.ts";
import { serve } from "./commands/serve.ts";
import { ConfigError } from "./config.ts";

const { version } = JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

/** The advice for errors of the system when the server starts. */
const advices: Readonly<Record<string, string>> = {
  EADDRINUSE: "; set TILTYARD_PORT to listen elsewhere",
  EADDRNOTAVAIL: "; set TILTYARD_HOST to an address of this machine",
  ENOTFOUND: "; set TILTYARD_HOST to an address of this machine",
};

/**
 * Runs a command line with the streams and the environment of this process and sets the exit code. Prints errors.
 * `serve` runs until the process receives a signal to stop.
 *
 * @param args The arguments without the name of the program.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await tiltyardCatalog().parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else {
      const advice = ownValue(advices, codeOf(error) ?? "") ?? "";
      process.stderr.write(`tiltyard-catalog: ${formatError(error)}${advice}\n`);
      process.exitCode = error instanceof ConfigError ? 2 : 1;
    }
  }
}

function tiltyardCatalog(): Command {
  const program = new Command("tiltyard-catalog")
    .description(
      `A catalog for Lance tables. Its settings are environment variables; ${documentationPage("settings")} lists them.`,
    )
    .version(version)
    .enablePositionalOptions();
  program
    .command("serve")
    .description("run the catalog")
    .addHelpText(
      "after",
      `\nIts settings are environment variables, e.g. TILTYARD_PORT=2333; ${documentationPage("settings")} lists them.`,
    )
    .action(serve);
  for (const command of [backupCommand(), restoreCommand(), moveCommand(), checkWarehouseCommand()])
    program.addCommand(command);
  reportErrors(program);
  return program;
}

/** Refers to the help after an error of Commander, and throws it. Commander itself would exit the process. */
function reportErrors(command: Command): void {
  command.exitOverride().showHelpAfterError("(see --help)");
  command.commands.forEach(reportErrors);
}
