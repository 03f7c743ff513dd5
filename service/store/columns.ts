import { type SqlBool, sql } from "kysely";
import { type Location, parseLocation } from "../storage/location.ts";
import { droppedNamespace } from "./path.ts";
import type { Session } from "./store.ts";
import { toStoredText } from "./transactions.ts";

/** The character around each name. A search contains no control characters. */
export const columnSeparator = "\u001f";
const charactersMax = 16_384;
export interface UnreadTable {
  readonly id: number;
  readonly location: Location;
  readonly highestVersion: number;
  /** The highest version when the columns were recorded; a negative number if they are unknown. */
  readonly columnsVersion: number;
}

/** The condition of the index of main branches whose columns are not recorded. */
const isUnread = sql<SqlBool>`branches.name = 'main' and branches.columns_version <> branches.highest_version`;

export async function listUnreadTables({ db }: Session, after: number, limit: number): Promise<UnreadTable[]> {
  const rows = await db
    .selectFrom("branches")
    .innerJoin("tables", "tables.id", "branches.tableId")
    .select(["tables.id", "tables.location", "branches.highestVersion", "branches.columnsVersion"])
    .where(isUnread)
    .where("branches.tableId", ">", after)
    .where("tables.namespace", "!=", droppedNamespace)
    .orderBy("branches.tableId")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, location: parseLocation(row.location) }));
}

/** Records the paths of columns, which remain unread if `forgetColumns` was called meanwhile. */
export async function recordColumns({ db }: Session, table: UnreadTable, columns: readonly string[]): Promise<void> {
  const names = join(columns);
  await db
    .insertInto("tableColumns")
    .columns(["tableId", "names"])
    // The table may have been purged.
    .expression((eb) =>
      eb
        .selectFrom("tables")
        .select(["id", sql<string>`cast(${names} as text)`.as("names")])
        .where("id", "=", table.id),
    )
    .onConflict((conflict) => conflict.column("tableId").doUpdateSet({ names }))
    .execute();
  await db
    .updateTable("branches")
    .set({ columnsVersion: table.highestVersion })
    .where((eb) => eb.and({ tableId: table.id, name: "main", columnsVersion: table.columnsVersion }))
    .execute();
}

/** Marks the columns of a table as unread because another version may be the latest. */
export async function forgetColumns({ db }: Session, tableId: number): Promise<void> {
  await db
    .updateTable("branches")
    // Each call changes the number, so that `recordColumns` notices it.
    .set({ columnsVersion: sql<number>`case when columns_version < 0 then columns_version - 1 else -2 end` })
    .where((eb) => eb.and({ tableId, name: "main" }))
    .execute();
}

function join(names: readonly string[]): string {
  let joined = columnSeparator;
  for (const name of names) {
    if (joined.length + name.length >= charactersMax) break;
    if (!name.includes(columnSeparator)) joined += `${name}${columnSeparator}`;
  }
  return toStoredText(joined);
}
