import { fileURLToPath, pathToFileURL } from "node:url";
import { Command } from "commander";

/** The programs of optional packages. */
const programs = {
  catalog: "@tiltyard/service",
  runner: "@tiltyard/runner",
} as const;
type ProgramName = keyof typeof programs;

/** Creates a command that passes all its arguments to another program. */
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
 * Runs a program in this process. With two processes, one would have to forward signals that a supervisor or a shell
 * sends to both, and the program would interpret a second signal as a request to exit immediately.
 */
export async function runProgram(program: ProgramName, args: readonly string[]): Promise<void> {
  const file = findProgram(program);
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

/** Returns the file of a program, for this version of Node. @throws Error if the program is not installed. */
export function findProgram(program: ProgramName): string {
  try {
    return fileURLToPath(import.meta.resolve(`${programs[program]}/command`));
  } catch (error) {
    throw new Error(`the ${program} is not installed next to this command. Install ${programs[program]}`, {
      cause: error,
    });
  }
}
