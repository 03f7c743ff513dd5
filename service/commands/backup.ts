import { existsSync, renameSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Command } from "commander";
import { copySqliteFile } from "../store/sqlite-file.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";
import { sqliteFile } from "./sqlite-only.ts";

/** Creates the command `backup`, which copies the database consistently while the service runs. */
export function backupCommand(): Command {
  return new Command("backup")
    .description("write a consistent copy of a SQLite database to a file; the service may be running")
    .argument("<file>", "a file that does not exist yet")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  tiltyard-catalog backup catalog-backup.sqlite")
    .action(async (name: string, options: JsonOption) => {
      const file = resolve(name);
      const databaseFile = sqliteFile("pg_dump");
      if (existsSync(file)) throw new Error(`${file} exists already`);
      if (!existsSync(dirname(file))) throw new Error(`the folder ${dirname(file)} does not exist`);
      if (!existsSync(databaseFile)) throw new Error(`no database exists at ${databaseFile}`);
      await copySqliteFile(databaseFile, file, (partial) => renameSync(partial, file));
      print(options, { file }, `wrote ${file}`);
    });
}
