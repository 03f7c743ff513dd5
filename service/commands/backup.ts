import { existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { documentationPage } from "@tiltyard/protocol";
import { Command } from "commander";
import { readConfig } from "../config.ts";
import { closeIfIntact, copySqliteFile, replaceSqliteFile } from "../store/sqlite-file.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";

export function backupCommand(): Command {
  return new Command("backup")
    .description("write a consistent copy of a SQLite database to a file; the service may be running")
    .argument("<file>", "a file that does not exist yet")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  tiltyard-catalog backup catalog-backup.sqlite")
    .action(async (name: string, options: JsonOption) => {
      const file = resolve(name);
      const databaseFile = sqliteFile("pg_dump");
      if (existsSync(file)) throw new Error(`${file} already exists`);
      if (!existsSync(dirname(file))) throw new Error(`the folder ${dirname(file)} does not exist`);
      if (!existsSync(databaseFile)) throw new Error(`no database exists at ${databaseFile}`);
      await copySqliteFile(databaseFile, file, (partial) => renameSync(partial, file));
      print(options, { file }, `wrote ${file}`);
    });
}

export function restoreCommand(): Command {
  return new Command("restore")
    .description("replace a SQLite database with a backup; stop the service first")
    .argument("<file>", "the file that `backup` wrote, or a copy of a database next to its -wal file")
    .option("--force", "replace an existing database, which is kept next to the new one")
    .addOption(jsonOption())
    .action(async (name: string, options: JsonOption & { readonly force?: boolean }) => {
      const backup = resolve(name);
      const database = sqliteFile("pg_restore");
      if (!existsSync(backup)) throw new Error(`no file exists at ${backup}`);
      if (existsSync(database) && !options.force)
        throw new Error(`${database} already exists; --force replaces it and keeps it under another name`);
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

/** Returns the file of a catalog with SQLite. @throws Error with the name of PostgreSQL's tool for a catalog in it. */
function sqliteFile(toolOfPostgres: string): string {
  const { database } = readConfig(process.env);
  if (database.kind === "sqlite") return database.file;
  throw new Error(`the catalog's database is PostgreSQL: use ${toolOfPostgres} (${documentationPage("catalog")})`);
}
