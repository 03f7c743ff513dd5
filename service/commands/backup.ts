import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Command } from "commander";
import { backupSqliteFile, closeForGood, verifySqliteFile } from "../store/sqlite-file.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";
import { sqliteFile } from "./sqlite-only.ts";

/** `backup`: a consistent copy of the database, taken while the service runs. */
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
      if (!existsSync(dirname(file))) throw new Error(`there is no folder ${dirname(file)}`);
      // Under its own name the file appears whole and checked, or not at all.
      const partial = `${file}.partial`;
      try {
        await backupSqliteFile(databaseFile, partial);
        // A copy in WAL mode would get files beside it whenever it is read.
        closeForGood(partial);
        verifySqliteFile(partial);
        renameSync(partial, file);
      } finally {
        rmSync(partial, { force: true });
      }
      print(options, { file }, `wrote ${file}`);
    });
}
