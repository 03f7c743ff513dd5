import type { Identifier } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";
import { droppedNamespace, fromPath, isWithin, toPath } from "./path.ts";
import { literal, lower, type Search } from "./search.ts";
import type { Session } from "./store.ts";

/** The character around each name. A search contains no control characters. */
const separator = "\u001f";
/** The maximum number of characters of a table's names. */
const charactersMax = 16_384;
/** A table whose columns may have changed since they were recorded. */
export interface UnreadTable {
  readonly id: number;
  readonly location: string;
  readonly highestVersion: number;
  /** The highest version when the columns were recorded; a negative number if they are unknown. */
  readonly columnsVersion: number;
}

/** The condition of the index of main branches whose columns are not recorded. */
const isUnread = sql<SqlBool>`branches.name = 'main' and branches.columns_version <> branches.highest_version`;

/** Lists tables whose columns may have changed since they were recorded, by id. */
export async function listUnreadTables({ db }: Session, after: number, limit: number): Promise<UnreadTable[]> {
  return db
    .selectFrom("branches")
    .innerJoin("tables", "tables.id", "branches.tableId")
    .select(["tables.id", "tables.location", "branches.highestVersion", "branches.columnsVersion"])
    .where(isUnread)
    .where("branches.tableId", ">", after)
    .where("tables.namespace", "!=", droppedNamespace)
    .orderBy("branches.tableId")
    .limit(limit)
    .execute();
}

/**
 * Records the columns of a table. They remain unread if `forgetColumns` was called meanwhile.
 *
 * @param columns Their paths. Those beyond the maximum number of characters are omitted.
 */
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
    .where("tableId", "=", table.id)
    .where("name", "=", "main")
    .where("columnsVersion", "=", table.columnsVersion)
    .execute();
}

/** Marks the columns of a table as unread because another version may be the latest. */
export async function forgetColumns({ db }: Session, tableId: number): Promise<void> {
  await db
    .updateTable("branches")
    // Each call changes the number, so that `recordColumns` notices it.
    .set({ columnsVersion: sql<number>`case when columns_version < 0 then columns_version - 1 else -2 end` })
    .where("tableId", "=", tableId)
    .where("name", "=", "main")
    .execute();
}

/** Joins names up to the maximum number of characters. */
function join(names: readonly string[]): string {
  let joined = separator;
  for (const name of names) {
    if (joined.length + name.length >= charactersMax) break;
    if (!name.includes(separator)) joined += `${name}${separator}`;
  }
  return joined;
}

export interface FoundColumn {
  readonly table: Identifier;
  readonly column: string;
}

/** Finds columns by name, best matches first. */
export async function searchColumns({ db }: Session, { within, parts, limit }: Search): Promise<FoundColumn[]> {
  const outer = lower(toPath(parts.slice(0, -1)));
  const name = lower(parts.at(-1) ?? "");
  const contains = (part: string) => sql<SqlBool>`lower(table_columns.names) like ${`%${literal(part)}%`} escape '!'`;
  const path = sql`lower(tables.namespace || ${sql.lit(toPath(["", ""]))} || tables.name)`;
  // A scan of the names of 100,000 tables with 20 columns takes some 100 ms.
  const rows = await db
    .selectFrom("tableColumns")
    .innerJoin("tables", "tables.id", "tableColumns.tableId")
    .select(["tables.namespace", "tables.name", "tableColumns.names"])
    .where(contains(outer === "" ? name : separator + name))
    .where(isWithin("tables.namespace", within))
    .where("tables.namespace", "!=", droppedNamespace)
    .where(sql<SqlBool>`${path} like ${`%${literal(outer)}`} escape '!'`)
    .orderBy(
      sql`case when ${contains(separator + name + separator)} then 0 when ${contains(separator + name)} then 1 else 2 end`,
    )
    .orderBy("tables.name")
    .orderBy("tables.namespace")
    .limit(limit)
    .execute();
  const rank = (column: string) => {
    const at = lower(column).indexOf(name);
    if (at < 0 || (at > 0 && outer !== "")) return undefined;
    return column.length === name.length ? 0 : Math.min(at, 1) + 1;
  };
  const found = rows.flatMap((row) => {
    const table = [...fromPath(row.namespace), row.name];
    return row.names.split(separator).flatMap((column) => {
      const ranked = rank(column);
      return ranked === undefined || column === "" ? [] : [{ table, column, ranked }];
    });
  });
  return found
    .sort((one, other) => one.ranked - other.ranked)
    .slice(0, limit)
    .map(({ table, column }) => ({ table, column }));
}
