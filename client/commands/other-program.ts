import { fileURLToPath, pathToFileURL } from "node:url";
import { Command } from "commander";

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

/**
 * In this process: of two, one would pass on signals that a supervisor or a shell sends to both, and the program takes
 * a second signal for haste.
 */
export async function runProgram(program: ProgramName, args: readonly string[]): Promise<void> {
  const file = findProgram(program);
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
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
