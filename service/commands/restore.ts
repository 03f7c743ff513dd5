import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Command } from "commander";
import { closeForGood, verifySqliteFile } from "../store/sqlite-file.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";
import { sqliteFile } from "./sqlite-only.ts";

interface RestoreOptions extends JsonOption {
  readonly force?: boolean;
}

/** `restore`: replaces the database by a backup, while the service is stopped. */
export function restoreCommand(): Command {
  return new Command("restore")
    .description("replace a SQLite database with a backup; stop the service first")
    .argument("<file>", "the file that `backup` wrote")
    .option("--force", "replace an existing database, which is kept beside the new one")
    .addOption(jsonOption())
    .action((name: string, options: RestoreOptions) => {
      const backup = resolve(name);
      const databaseFile = sqliteFile("pg_restore");
      if (!existsSync(backup)) throw new Error(`there is no file ${backup}`);
      verifySqliteFile(backup);
      const kept = moveAside(databaseFile, options.force ?? false);
      mkdirSync(dirname(databaseFile), { recursive: true });
      const partial = `${databaseFile}.partial`;
      try {
        copyFileSync(backup, partial);
        renameSync(partial, databaseFile);
      } finally {
        rmSync(partial, { force: true });
      }
      print(
        options,
        { database: databaseFile, ...(kept !== undefined && { kept }) },
        `restored ${databaseFile}${kept === undefined ? "" : `; the one before is kept as ${kept}`}`,
      );
    });
}

/** @returns The new path of the replaced database; undefined when there was none. */
function moveAside(databaseFile: string, force: boolean): string | undefined {
  if (!existsSync(databaseFile)) return undefined;
  if (!force) throw new Error(`${databaseFile} exists already; --force replaces it and keeps it under another name`);
  closeForGood(databaseFile);
  const kept = `${databaseFile}.before-restore-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
  renameSync(databaseFile, kept);
  return kept;
}
