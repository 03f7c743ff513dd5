import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Command } from "commander";
import { ConfigError, readConfig } from "../config.ts";
import { describeDatabase } from "../store/database.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";

export function moveCommand(): Command {
  return new Command("move")
    .description("copy the catalog of a SQLite file into the empty PostgreSQL database in TILTYARD_DATABASE_URL")
    .argument("<file>", "the SQLite file, which is not changed; stop its service first")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nExample:\n  TILTYARD_DATABASE_URL=postgres://... tiltyard-catalog move data/catalog.sqlite\n\n" +
        "The tables themselves stay where they are.",
    )
    .action(async (name: string, options: JsonOption) => {
      const file = resolve(name);
      const { database } = readConfig(process.env);
      if (database.kind !== "postgres")
        throw new ConfigError("TILTYARD_DATABASE_URL must name the PostgreSQL database to move to: postgres://...");
      if (!existsSync(file)) throw new Error(`no file exists at ${file}`);
      // The driver of PostgreSQL is loaded only when it is needed.
      const { moveToPostgres } = await import("../store/move.ts");
      const rows = await moveToPostgres(file, database);
      const counted = Object.entries(rows).map(([table, count]) => `  ${table}: ${count}`);
      print(
        options,
        { from: file, to: describeDatabase(database), rows },
        `moved ${file} to ${describeDatabase(database)}, and compared every row:\n${counted.join("\n")}`,
      );
    });
}
