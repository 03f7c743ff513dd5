import { ParameterError } from "@tiltyard/platform";
import { CatalogError } from "@tiltyard/protocol";
import { Command, CommanderError } from "commander";
import { catalogCommands } from "./commands/catalog.ts";
import { clusterCommand } from "./commands/cluster.ts";
import { completionCommand } from "./commands/completion.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { reportOf } from "./commands/error-message.ts";
import { exitCodes, UsageError } from "./commands/exit-codes.ts";
import { functionsCommand } from "./commands/functions.ts";
import { grantsCommand } from "./commands/grants.ts";
import { rayCommand } from "./commands/job.ts";
import { jobsCommand } from "./commands/jobs.ts";
import { keysCommand } from "./commands/keys.ts";
import { loginCommand, logoutCommand } from "./commands/login.ts";
import { namespacesCommand } from "./commands/namespaces.ts";
import { handedOver } from "./commands/other-program.ts";
import { log } from "./commands/output.ts";
import { quickstartCommand } from "./commands/quickstart.ts";
import { branchesCommand, tagsCommand } from "./commands/refs.ts";
import { runCommand } from "./commands/run.ts";
import { secretsCommand } from "./commands/secrets.ts";
import { tablesCommand } from "./commands/tables.ts";
import { version } from "./version.ts";

/**
 * Runs a command line with the streams and the environment of this process and sets the exit code. Prints errors.
 *
 * @param args The arguments without the name of the program.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await tiltyard().parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    else {
      log(`tiltyard: ${reportOf(error)}`);
      // The client itself throws a CatalogError for an invalid identifier.
      const isUsage = [UsageError, ParameterError, CatalogError].some((type) => error instanceof type);
      if (isUsage) process.exitCode = exitCodes.usage;
      else process.exitCode ||= exitCodes.failed;
    }
  }
}

/** Creates the program with all its commands. */
export function tiltyard(): Command {
  const program = new Command("tiltyard")
    .description("Ray clusters and jobs over Lance tables, and the catalog.")
    .version(version)
    // An option of the program after a command would otherwise replace that of the command.
    .enablePositionalOptions();
  const runner = handedOver("runner", "run the catalog's jobs on Ray (tiltyard-runner)", "runner", []);
  for (const command of [
    runCommand(),
    clusterCommand(),
    rayCommand(),
    jobsCommand(),
    runner,
    loginCommand(),
    logoutCommand(),
    namespacesCommand(),
    tablesCommand(),
    tagsCommand(),
    branchesCommand(),
    functionsCommand(),
    secretsCommand(),
    keysCommand(),
    grantsCommand(),
    doctorCommand(),
    ...catalogCommands(),
  ])
    program.addCommand(command);
  program.addCommand(quickstartCommand());
  program.addCommand(completionCommand(program));
  reportErrors(program);
  return program;
}

/**
 * Refers to the help after an error of Commander, and throws it. Commander itself would exit with 1 for an invalid
 * option, a code with a different meaning here.
 */
function reportErrors(command: Command): void {
  command.exitOverride().showHelpAfterError("(see --help)");
  command.commands.forEach(reportErrors);
}
