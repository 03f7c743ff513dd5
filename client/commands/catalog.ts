import type { Command } from "commander";
import { handedOver } from "./other-program.ts";

const commands = {
  serve: "run the catalog",
  keys: "make, list and revoke API keys of the catalog",
  grants: "give principals roles on namespaces of the catalog, list them, take them back",
  backup: "write a consistent copy of the catalog's database to a file",
  restore: "put a copy of the catalog's database in its place",
  move: "copy the catalog of a SQLite file into an empty PostgreSQL",
  tables: "bring dropped tables back, and protect tables from being dropped",
} as const;

/** The catalog's own commands, which need the package of the service: this one has no database. */
export function catalogCommands(): Command[] {
  return Object.entries(commands).map(([name, description]) =>
    handedOver(name, `${description} (tiltyard-catalog ${name})`, "catalog", [name]),
  );
}
