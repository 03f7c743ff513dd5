#!/usr/bin/env node
import { ParameterError } from "@tiltyard/protocol";
import { Command, CommanderError } from "commander";
import { catalogCommands } from "./commands/catalog.ts";
import { clusterCommand } from "./commands/cluster.ts";
import { completionCommand } from "./commands/completion.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { messageOf } from "./commands/error-message.ts";
import { exitCodes, UsageError } from "./commands/exit-codes.ts";
import { jobCommand } from "./commands/job.ts";
import { jobsCommand } from "./commands/jobs.ts";
import { handedOver } from "./commands/other-program.ts";
import { quickstartCommand } from "./commands/quickstart.ts";
import { runCommand } from "./commands/run.ts";
import { version } from "./version.ts";

const program = new Command("tiltyard")
  .description("Ray clusters and jobs over Lance tables, and the catalog.")
  .version(version)
  .showHelpAfterError("(see --help)");
const runner = handedOver("runner", "run the catalog's jobs on Ray (tiltyard-runner)", "runner", []);
for (const command of [
  runCommand(),
  clusterCommand(),
  jobCommand(),
  jobsCommand(),
  runner,
  doctorCommand(),
  ...catalogCommands(),
])
  program.addCommand(command);
program.addCommand(quickstartCommand());
program.addCommand(completionCommand(program));
throwInsteadOfExit(program);
for (const stream of [process.stdout, process.stderr]) stream.on("error", ignoreClosedPipe);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  else {
    process.stderr.write(`tiltyard: ${messageOf(error)}\n`);
    const isUsage = error instanceof UsageError || error instanceof ParameterError;
    process.exitCode = isUsage ? exitCodes.usage : exitCodes.failed;
  }
}

/** A reader such as `head` leaves when it has enough. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}

/** Commander would end the process with 1 for a wrong option, which here means something else. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  command.commands.forEach(throwInsteadOfExit);
}
