import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { exitCodes } from "./exit-codes.ts";

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
    new Command(name)
      .description(`${description} (tiltyard-catalog ${name})`)
      .helpOption(false)
      .allowUnknownOption()
      .allowExcessArguments()
      .argument("[arguments...]")
      .action((_arguments: readonly string[], _options: object, command: Command) =>
        runCatalog([name, ...command.args]),
      ),
  );
}

async function runCatalog(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [findCatalog(), ...args], { stdio: "inherit" });
  // What the terminal sends goes to both; the catalog decides when to end.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  const [code] = await once(child, "exit");
  process.exitCode = typeof code === "number" ? code : exitCodes.failed;
}

/** The program of the catalog, for this Node. @throws Error When it is not installed. */
export function findCatalog(): string {
  try {
    return fileURLToPath(import.meta.resolve("@tiltyard/service/main.ts"));
  } catch (error) {
    throw new Error("the catalog is not installed beside this command: install @tiltyard/service", { cause: error });
  }
}
