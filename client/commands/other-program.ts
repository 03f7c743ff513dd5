import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { exitCodes } from "./exit-codes.ts";

/** Programs of packages that this one works without. */
const programs = {
  catalog: "@tiltyard/service",
  runner: "@tiltyard/runner",
} as const;
type ProgramName = keyof typeof programs;

/** A command that another program carries out, with all that comes after its name. */
export function handedOver(
  name: string,
  description: string,
  program: ProgramName,
  before: readonly string[],
): Command {
  return new Command(name)
    .description(description)
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .argument("[arguments...]")
    .action((_arguments: readonly string[], _options: object, command: Command) =>
      runProgram(program, [...before, ...command.args]),
    );
}

async function runProgram(program: ProgramName, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [findProgram(program), ...args], { stdio: "inherit" });
  // What the terminal sends goes to both; the program decides when to end.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  const [code] = await once(child, "exit");
  process.exitCode = typeof code === "number" ? code : exitCodes.failed;
}

/** A program's file, for this Node. @throws Error When it is not installed. */
export function findProgram(program: ProgramName): string {
  try {
    return fileURLToPath(import.meta.resolve(`${programs[program]}/command`));
  } catch (error) {
    throw new Error(`the ${program} is not installed beside this command: install ${programs[program]}`, {
      cause: error,
    });
  }
}
