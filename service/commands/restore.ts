import { existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Command } from "commander";
import { closeIfIntact, copySqliteFile, replaceSqliteFile } from "../store/sqlite-file.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";
import { sqliteFile } from "./sqlite-only.ts";

interface RestoreOptions extends JsonOption {
  readonly force?: boolean;
}

/** Creates the command `restore`, which replaces the database by a backup while the service is stopped. */
export function restoreCommand(): Command {
  return new Command("restore")
    .description("replace a SQLite database with a backup; stop the service first")
    .argument("<file>", "the file that `backup` wrote, or a copy of a database next to its -wal file")
    .option("--force", "replace an existing database, which is kept next to the new one")
    .addOption(jsonOption())
    .action(async (name: string, options: RestoreOptions) => {
      const backup = resolve(name);
      const database = sqliteFile("pg_restore");
      if (!existsSync(backup)) throw new Error(`no file exists at ${backup}`);
      if (existsSync(database) && !options.force)
        throw new Error(`${database} exists already; --force replaces it and keeps it under another name`);
      if (existsSync(database)) closeIfIntact(database);
      mkdirSync(dirname(database), { recursive: true });
      // The current database remains in place until the new one is complete.
      const kept = await copySqliteFile(backup, database, (partial) => replaceSqliteFile(database, partial));
      print(
        options,
        { database, ...(kept !== undefined && { kept }) },
        `restored ${database}${kept === undefined ? "" : `; the one before is kept as ${kept}`}`,
      );
    });
}
