import type { Command } from "commander";
import { handedOver } from "./other-program.ts";

const commands = {
  serve: "run the catalog",
  keys: "create, list and revoke API keys of the catalog",
  grants: "grant, list and revoke roles on namespaces of the catalog",
  backup: "write a consistent copy of the catalog's database to a file",
  restore: "restore the catalog's database from a backup",
  move: "copy the catalog of a SQLite file into an empty PostgreSQL database",
  tables: "list and undrop dropped tables, protect tables from being dropped",
} as const;

/** The catalog's own commands, which need the package of the service: this one has no database. */
export function catalogCommands(): Command[] {
  return Object.entries(commands).map(([name, description]) =>
    handedOver(name, `${description} (tiltyard-catalog ${name})`, "catalog", [name]),
  );
}
