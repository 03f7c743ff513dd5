import type { Command } from "commander";

/** The commands that `tiltyard-catalog` can run on the configured database without a server. */
const localCommands: Readonly<Record<string, readonly string[]>> = {
  keys: ["create", "list", "revoke"],
  grants: ["add", "list", "remove"],
  tables: ["dropped", "undrop", "protect", "unprotect"],
};

/** Documents `--local`, which `isLocal` evaluates before the command line is parsed. */
export function addLocalOption(command: Command): Command {
  return command.option("--local", "use the database of TILTYARD_DATA_DIR (./data), without a server");
}

/** Reports whether a command line addresses the local database. */
export function isLocal([group = "", command = "", ...options]: readonly string[]): boolean {
  const isLocalCommand = Object.hasOwn(localCommands, group) && localCommands[group]?.includes(command) === true;
  return isLocalCommand && options.includes("--local");
}
