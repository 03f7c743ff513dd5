import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import type { ManagementClient } from "../catalog/documented-operations.ts";
import type { CatalogAnswer } from "../catalog/operation-types.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { readIdentifier, showIdentifier } from "./identifier.ts";
import { listed } from "./listed.ts";
import { print, printTable, timeOf } from "./output.ts";

type DroppedTable = CatalogAnswer<
  import("@tiltyard/protocol").ManagementContracts["listDroppedTables"]
>["dropped_tables"][number];

/** Adds `tables dropped` and `tables undrop`. */
export function addDroppedTableCommands(tables: Command): void {
  addCatalogCommand(tables, "dropped", "list the dropped tables that can be undropped")
    .argument("[namespace]", "only tables of this namespace and its descendants", "$")
    .action(async (namespace: string, options: CatalogOptions) => {
      const dropped = await listDropped(catalogOf(options).management, readIdentifier(namespace));
      const rows = dropped.map(({ dropped_id, id, dropped_at_millis, kept_until_millis }) => ({
        id: dropped_id,
        table: showIdentifier(id),
        dropped: timeOf(dropped_at_millis),
        kept_until: timeOf(kept_until_millis),
      }));
      printTable(options, rows, ["id", "table", "dropped", "kept_until"]);
    });

  addCatalogCommand(tables, "undrop", "restore a dropped table with all its versions")
    .argument("<id>", "the id from `tables dropped`, or the name for the latest dropped table of that name")
    .argument("[table]", "the new name; the old one when absent")
    .addHelpText("after", "\nExample:\n  tiltyard tables undrop 12 'prod$films_before'")
    .action(async (idOrName: string, name: string | undefined, options: CatalogOptions) => {
      const { management } = catalogOf(options);
      const newId = name === undefined ? undefined : [...readIdentifier(name)];
      const { dropped_id, id } = await findDropped(management, idOrName);
      const undropped = await management.undropTable({ id, dropped_id, ...(newId && { new_id: newId }) });
      const table = showIdentifier(undropped.id);
      print(options, { id: dropped_id, table }, `${table} is back`);
    });
}

function listDropped(management: ManagementClient, within: readonly string[]): Promise<readonly DroppedTable[]> {
  return listed(management.listDroppedTables, { id: within }, ({ dropped_tables }) => dropped_tables);
}

async function findDropped(management: ManagementClient, idOrName: string): Promise<DroppedTable> {
  const isId = /^\d+$/.test(idOrName);
  const name = isId ? [] : readIdentifier(idOrName);
  const dropped = await listDropped(management, name.slice(0, -1));
  const found = dropped
    .filter(({ dropped_id, id }) => (isId ? String(dropped_id) === idOrName : isDeepStrictEqual(id, name)))
    .toSorted((one, other) => other.dropped_at_millis - one.dropped_at_millis)[0];
  if (found === undefined)
    throw new Error(`No dropped table ${idOrName} can be undropped. See: tiltyard tables dropped`);
  return found;
}
