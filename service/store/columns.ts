import type { Identifier } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";
import { droppedNamespace, fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import { literal, lower, type Search } from "./search.ts";
import { statement } from "./statement.ts";
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

const listUnread = statement((db, p: { after: number; limit: number }) =>
  db
    .selectFrom("branches")
    .innerJoin("tables", "tables.id", "branches.table_id")
    .select([
      "tables.id",
      "tables.location",
      "branches.highest_version as highestVersion",
      "branches.columns_version as columnsVersion",
    ])
    .where(isUnread)
    .where("branches.table_id", ">", p.after)
    .where("tables.namespace", "!=", sql.lit(droppedNamespace))
    .orderBy("branches.table_id")
    .limit(p.limit),
);

/** Lists tables whose columns may have changed since they were recorded, by id. */
export function listUnreadTables(session: Session, after: number, limit: number): Promise<UnreadTable[]> {
  return session.all(listUnread, { after, limit });
}

const put = statement((db, p: { table_id: number; names: string }) =>
  db
    .insertInto("table_columns")
    .columns(["table_id", "names"])
    // The table may have been purged.
    .expression((eb) =>
      eb
        .selectFrom("tables")
        .select(["id", sql<string>`${p.names}`.as("names")])
        .where("id", "=", p.table_id),
    )
    .onConflict((conflict) => conflict.column("table_id").doUpdateSet((eb) => ({ names: eb.ref("excluded.names") }))),
);
const note = statement((db, p: { table_id: number; version: number; before: number }) =>
  db
    .updateTable("branches")
    .set({ columns_version: p.version })
    .where("table_id", "=", p.table_id)
    .where("name", "=", "main")
    .where("columns_version", "=", p.before),
);

/**
 * Records the columns of a table. They remain unread if `forgetColumns` was called meanwhile.
 *
 * @param columns Their paths. Those beyond the maximum number of characters are omitted.
 */
export async function recordColumns(session: Session, table: UnreadTable, columns: readonly string[]): Promise<void> {
  const { id: table_id, highestVersion: version, columnsVersion: before } = table;
  await session.run(put, { table_id, names: join(columns) });
  await session.run(note, { table_id, version, before });
}

const forget = statement((db, p: { table_id: number }) =>
  db
    .updateTable("branches")
    // Each call changes the number, so that `recordColumns` notices it.
    .set({ columns_version: sql<number>`case when columns_version < 0 then columns_version - 1 else -2 end` })
    .where("table_id", "=", p.table_id)
    .where("name", "=", "main"),
);

/** Marks the columns of a table as unread because another version may be the latest. */
export async function forgetColumns(session: Session, tableId: number): Promise<void> {
  await session.run(forget, { table_id: tableId });
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

interface Parameters extends Subtree {
  /** The end of the identifier of the table. */
  readonly outer: string;
  readonly inner: string;
  readonly exact: string;
  readonly prefix: string;
  readonly limit: number;
}

// A scan of the names of 100,000 tables with 20 columns takes some 100 ms.
const find = statement((db, p: Parameters) => {
  const contains = (pattern: string) => sql<SqlBool>`lower(table_columns.names) like ${pattern} escape '!'`;
  const path = sql`lower(tables.namespace || ${sql.lit(toPath(["", ""]))} || tables.name)`;
  return db
    .selectFrom("table_columns")
    .innerJoin("tables", "tables.id", "table_columns.table_id")
    .select(["tables.namespace", "tables.name", "table_columns.names"])
    .where(contains(p.inner))
    .where(isWithin("tables.namespace", p))
    .where("tables.namespace", "!=", sql.lit(droppedNamespace))
    .where(sql<SqlBool>`${path} like ${p.outer} escape '!'`)
    .orderBy(sql`case when ${contains(p.exact)} then 0 when ${contains(p.prefix)} then 1 else 2 end`)
    .orderBy("tables.name")
    .orderBy("tables.namespace")
    .limit(p.limit);
});

export interface FoundColumn {
  readonly table: Identifier;
  readonly column: string;
}

/** Finds columns by name, best matches first. */
export async function searchColumns(session: Session, { within, parts, limit }: Search): Promise<FoundColumn[]> {
  const outer = lower(toPath(parts.slice(0, -1)));
  const name = lower(parts.at(-1) ?? "");
  const prefix = `%${separator}${literal(name)}%`;
  const rows = await session.all(find, {
    ...subtree(within),
    outer: `%${literal(outer)}`,
    inner: outer === "" ? `%${literal(name)}%` : prefix,
    exact: `%${separator}${literal(name)}${separator}%`,
    prefix,
    limit,
  });
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
