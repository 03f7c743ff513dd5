import { codeOf, formatError } from "@tiltyard/protocol";
import { Command, CommanderError } from "commander";
import { backupCommand, restoreCommand } from "./commands/backup.ts";
import { checkWarehouseCommand } from "./commands/check-warehouse.ts";
import { grantsCommand } from "./commands/grants.ts";
import { keysCommand } from "./commands/keys.ts";
import { moveCommand } from "./commands/move.ts";
import { serve } from "./commands/serve.ts";
import { tablesCommand } from "./commands/tables.ts";
import { ConfigError } from "./config.ts";
import { version } from "./version.ts";

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
      process.stderr.write(`tiltyard-catalog: ${reportOf(error)}\n`);
      process.exitCode = error instanceof ConfigError ? 2 : 1;
    }
  }
}

function tiltyardCatalog(): Command {
  const program = new Command("tiltyard-catalog")
    .description(
      "A catalog for Lance tables. Its settings are environment variables; docs/reference/settings.md lists them.",
    )
    .version(version)
    .showHelpAfterError("(see --help)");
  program
    .command("serve")
    .description("run the catalog")
    .addHelpText(
      "after",
      "\nIts settings are environment variables, e.g. TILTYARD_PORT=2333; docs/reference/settings.md lists them.",
    )
    .action(serve);
  for (const command of [
    keysCommand(),
    grantsCommand(),
    backupCommand(),
    restoreCommand(),
    moveCommand(),
    tablesCommand(),
    checkWarehouseCommand(),
  ])
    program.addCommand(command);
  throwInsteadOfExit(program);
  return program;
}

/** Throws errors of Commander, which would exit the process by default. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  command.commands.forEach(throwInsteadOfExit);
}

function reportOf(error: unknown): string {
  const advice = codeOf(error) === "EADDRINUSE" ? "; set TILTYARD_PORT to listen elsewhere" : "";
  return formatError(error) + advice;
}
