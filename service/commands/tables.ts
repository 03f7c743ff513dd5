import { formatIdentifier, parseIdentifier } from "@tiltyard/protocol";
import { Command } from "commander";
import { readConfig } from "../config.ts";
import { setProtected } from "../domain/protection.ts";
import { operator } from "../domain/transaction.ts";
import { undropTable } from "../dropping/undrop.ts";
import { listDroppedTables } from "../store/dropped-tables.ts";
import { addLocalCommand, type LocalOptions, withDatabase } from "./local-database.ts";
import { print, printTable } from "./output.ts";

/** Creates the command `tables`, which undrops tables and protects tables from being dropped. */
export function tablesCommand(): Command {
  const tables = new Command("tables").description("list and undrop dropped tables, protect tables from being dropped");

  addLocalCommand(tables, "dropped", "list the dropped tables that can be undropped").action(
    async (options: LocalOptions) => {
      const { dropRetentionMs } = readConfig(process.env);
      const found = await withDatabase(options, (store) =>
        listDroppedTables(store.read, { limit: Number.MAX_SAFE_INTEGER }),
      );
      printTable(
        options,
        found.map(({ id, identifier, droppedAtMillis }) => ({
          id: String(id),
          table: formatIdentifier(identifier),
          dropped: new Date(droppedAtMillis).toISOString(),
          "kept until": new Date(droppedAtMillis + dropRetentionMs).toISOString(),
        })),
      );
    },
  );

  addLocalCommand(tables, "undrop", "undrop a table with all its versions")
    .argument("<id>", "as `tables dropped` shows it")
    .argument("[table]", "the new name; the old one when absent")
    .addHelpText("after", "\nExample:\n  tiltyard-catalog tables undrop 12 'prod$films_before'")
    .action(async (id: string, name: string | undefined, options: LocalOptions) => {
      const to = name === undefined ? undefined : parseIdentifier(name);
      const { identifier } = await withDatabase(options, (store) =>
        store.write((session) => undropTable(session, operator, { id: Number(id) }, to)),
      );
      const table = formatIdentifier(identifier);
      print(options, { id, table }, `${table} is back`);
    });

  for (const [command, isProtected] of [
    ["protect", true],
    ["unprotect", false],
  ] as const)
    addLocalCommand(tables, command, isProtected ? "refuse to drop a table" : "allow a table to be dropped")
      .argument("<table>")
      .action(async (table: string, options: LocalOptions) => {
        const identifier = parseIdentifier(table);
        await withDatabase(options, (store) =>
          store.write((session) => setProtected(session, operator, identifier, isProtected)),
        );
        print(options, { table, protected: isProtected }, `${table} is ${isProtected ? "" : "not "}protected`);
      });

  return tables;
}
