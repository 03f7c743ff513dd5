import type { Command } from "commander";
import { handedOver } from "./other-program.ts";

const commands = {
  serve: "run the catalog",
  backup: "write a consistent copy of the catalog's database to a file",
  restore: "restore the catalog's database from a backup",
  move: "copy the catalog of a SQLite file into an empty PostgreSQL database",
} as const;

/** Creates the commands on the catalog's database, which the package of the service runs. */
export function catalogCommands(): Command[] {
  return Object.entries(commands).map(([name, description]) =>
    handedOver(name, `${description} (tiltyard-catalog ${name})`, "catalog", [name]),
  );
}
