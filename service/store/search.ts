import { setImmediate } from "node:timers/promises";
import type { Identifier } from "@tiltyard/protocol";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import { columnSeparator } from "./columns.ts";
import { droppedNamespace, fromPath, rangeBelow, toPath } from "./path.ts";
import type { Session } from "./store.ts";

export interface Search {
  readonly within: Identifier;
  /** A part of a name; or the last parts of a namespace and the beginning of a name in it. */
  readonly parts: readonly string[];
  readonly limit: number;
}

interface FoundColumn {
  readonly table: Identifier;
  readonly column: string;
}

/** The number of objects that a step examines within some milliseconds, or 30 for the longest columns. */
const stepRows = 128;

/** Finds namespaces, tables and columns by name, best matches first. Other requests run between the steps. */
export async function search(session: Session, { within, parts, limit }: Search) {
  const wanted = { outer: lower(toPath(parts.slice(0, -1))), name: lower(parts.at(-1) ?? "") };
  const namespaces = new Best<Identifier>(limit);
  for await (const range of rangesOf(session, "namespaces", within))
    for (const { parent, name } of await namesIn(session, "namespaces", range, wanted))
      namespaces.add([...fromPath(parent), name], name, rankOf(lower(name), wanted));
  const tables = new Best<Identifier>(limit);
  const columns = new Best<FoundColumn>(limit);
  for await (const range of rangesOf(session, "tables", within)) {
    for (const { parent, name } of await namesIn(session, "tables", range, wanted))
      tables.add([...fromPath(parent), name], name, rankOf(lower(name), wanted));
    for await (const { table, column, lowered } of columnsIn(session, range, wanted))
      columns.add({ table, column }, table.at(-1) ?? "", rankOf(lowered, wanted));
  }
  return { namespaces: namespaces.items, tables: tables.items, columns: columns.items };
}

interface Wanted {
  /** The end of the path of the parent, in lower case; empty for any parent. */
  readonly outer: string;
  readonly name: string;
}

/** The columns of the parents and of the names of objects. */
const parents = { namespaces: "parent", tables: "namespace" } as const;
type Source = keyof typeof parents;

/** Yields the conditions of consecutive ranges of the objects within a namespace, in the order of an index. */
async function* rangesOf({ db }: Session, source: Source, within: Identifier): AsyncGenerator<RawBuilder<SqlBool>> {
  const parent = sql.ref(`${source}.${parents[source]}`);
  const name = sql.ref(`${source}.name`);
  const path = toPath(within);
  const end = path === "" ? sql`` : sql`and ${parent} < ${rangeBelow(path).to}`;
  // The path of the dropped tables is in the range of the root only. No name is empty.
  const rangeAfter = (lastParent: string, lastName: string): RawBuilder<SqlBool> =>
    sql`(${parent}, ${name}) > (${lastParent}, ${lastName}) and ${parent} <> ${droppedNamespace}`;
  let after = rangeAfter(path, "");
  for (;;) {
    const { rows } = await sql<{ readonly parent: string; readonly name: string }>`
      select ${parent} as parent, ${name} as name from ${sql.table(source)} where ${after} ${end}
      order by ${parent}, ${name} limit 1 offset ${stepRows - 1}`.execute(db);
    const [last] = rows;
    if (last === undefined) {
      yield sql`${after} ${end}`;
      return;
    }
    // With the end of the namespace as another upper bound, SQLite would read up to that one.
    yield sql`${after} and (${parent}, ${name}) <= (${last.parent}, ${last.name})`;
    after = rangeAfter(last.parent, last.name);
    await setImmediate();
  }
}

/** Returns the objects of a range whose names match. LIKE would compare a repetitive name with each part of the search. */
async function namesIn(session: Session, source: Source, range: RawBuilder<SqlBool>, { outer, name }: Wanted) {
  const parent = sql.ref(`${source}.${parents[source]}`);
  const position = positionIn(session, sql`lower(${sql.ref(`${source}.name`)})`, name);
  const { rows } = await sql<{ readonly parent: string; readonly name: string }>`
    select ${parent} as parent, name from ${sql.table(source)} where ${range}
      and ${outer === "" ? sql`${position} > 0` : sql`${position} = 1 and ${endsWith(parent, outer)}`}`.execute(
    session.db,
  );
  return rows;
}

const comparedTables = 16;

/** Yields the matching columns of the tables in a range, also in lower case. */
async function* columnsIn(
  session: Session,
  range: RawBuilder<SqlBool>,
  { outer, name }: Wanted,
): AsyncGenerator<FoundColumn & { readonly lowered: string }> {
  const path = sql`tables.namespace || ${sql.lit(toPath(["", ""]))} || tables.name`;
  const position = positionIn(
    session,
    sql`lower(table_columns.names)`,
    outer === "" ? name : `${columnSeparator}${name}`,
  );
  const { rows } = await sql<{ readonly namespace: string; readonly name: string; readonly names: string }>`
    select tables.namespace as namespace, tables.name as name, table_columns.names as names
    from tables join table_columns on table_columns.table_id = tables.id
    where ${range} and ${position} > 0 ${outer === "" ? sql`` : sql`and ${endsWith(path, outer)}`}`.execute(session.db);
  for (const [index, row] of rows.entries()) {
    if (index % comparedTables === comparedTables - 1) await setImmediate();
    const table = [...fromPath(row.namespace), row.name];
    const lowered = lower(row.names).split(columnSeparator);
    for (const [number, column] of row.names.split(columnSeparator).entries()) {
      const each = lowered[number] ?? "";
      if (column !== "" && (outer === "" ? each.includes(name) : each.startsWith(name)))
        yield { table, column, lowered: each };
    }
  }
}

function positionIn({ position }: Session, text: RawBuilder<unknown>, part: string): RawBuilder<number> {
  return sql`${position}(${text}, ${part})`;
}

function endsWith(path: RawBuilder<unknown>, end: string): RawBuilder<SqlBool> {
  return sql`substr(lower(${path}), length(${path}) - length(cast(${end} as text)) + 1) = ${end}`;
}

/** Ranks a name that is equal to the searched one before those that begin with it, and those before all others. */
function rankOf(lowered: string, { name }: Wanted): number {
  if (lowered.startsWith(name)) return lowered.length === name.length ? 0 : 1;
  return 2;
}

/** The factor of a limit by which found objects are collected before the best are chosen. */
const keptFactor = 10;

/** Keeps the best of the found objects, by their rank and then by name. */
class Best<Item> {
  readonly #limit: number;
  #found: (readonly [rank: number, name: string, item: Item])[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(item: Item, name: string, rank: number): void {
    this.#found.push([rank, name, item]);
    if (this.#found.length >= keptFactor * this.#limit) this.#found = this.#best();
  }

  get items(): readonly Item[] {
    return this.#best().map(([, , item]) => item);
  }

  #best() {
    const order = (one: string, other: string) => (one < other ? -1 : Number(one > other));
    return this.#found
      .toSorted(([rank, name], [otherRank, otherName]) => rank - otherRank || order(name, otherName))
      .slice(0, this.#limit);
  }
}

/** Returns a text with ASCII letters in lower case. Databases differ in the lower case of other letters. */
function lower(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
