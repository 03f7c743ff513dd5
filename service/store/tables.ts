import type { Identifier } from "@tiltyard/protocol";
import { type Selectable, type SelectQueryBuilder, sql } from "kysely";
import { droppedNamespace, fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";

export interface NewTable {
  readonly identifier: Identifier;
  /** The normalized URI of the location. */
  readonly location: string;
  readonly properties: Readonly<Record<string, string>>;
}

export interface TableRecord extends NewTable {
  /** The id, which does not change when the table is renamed. */
  readonly id: number;
  /** Reports whether new rows may open jobs. */
  readonly isAutomated?: boolean;
}

const find = statement((db, p: { namespace: string; name: string }) =>
  db
    .selectFrom("tables")
    .select(["id", "location", "properties", "is_automated"])
    .where("namespace", "=", p.namespace)
    .where("name", "=", p.name),
);

export async function findTable(session: Session, identifier: Identifier): Promise<TableRecord | undefined> {
  const row = await session.first(find, keyOf(identifier));
  if (row === undefined) return undefined;
  const { id, location } = row;
  return { id, identifier, location, properties: JSON.parse(row.properties), isAutomated: row.is_automated === 1 };
}

const findById = statement((db, p: { id: number; namespace: string }) =>
  db
    .selectFrom("tables")
    .select(["id", "namespace", "name", "location", "properties"])
    .where("id", "=", p.id)
    .where("namespace", "!=", p.namespace),
);

/** Returns the table with this id; undefined if it was dropped. */
export async function findTableById(session: Session, id: number): Promise<TableRecord | undefined> {
  const row = await session.first(findById, { id, namespace: droppedNamespace });
  return row && toTable(row);
}

function toTable(row: Pick<Selectable<Schema["tables"]>, "id" | "namespace" | "name" | "location" | "properties">) {
  const { id, location } = row;
  return { id, identifier: [...fromPath(row.namespace), row.name], location, properties: JSON.parse(row.properties) };
}

const findWith = statement((db, p: Subtree & { pattern: string }) =>
  db
    .selectFrom("tables")
    .select(["id", "namespace", "name", "location", "properties"])
    .where(isWithin("namespace", p))
    .where("properties", "like", p.pattern),
);

/**
 * Lists the tables in a namespace and below it whose properties contain a text as JSON. The text must not contain
 * wildcards of SQL.
 */
export async function listTablesWith(session: Session, namespace: Identifier, text: string): Promise<TableRecord[]> {
  const rows = await session.all(findWith, { ...subtree(namespace), pattern: `%${text}%` });
  return rows.map(toTable);
}

const insert = statement((db, p: Pick<Schema["tables"], (typeof insertedColumns)[number]>) =>
  db
    .insertInto("tables")
    .values(pick(p, ...insertedColumns))
    .returning("id"),
);
const insertedColumns = ["namespace", "name", "location", "properties", "created_at"] as const;

/** Inserts a table. Its namespace must exist, and its name and its location must be free. */
export async function insertTable(session: Session, table: NewTable): Promise<TableRecord> {
  const row = await session.first(insert, {
    ...keyOf(table.identifier),
    location: table.location,
    properties: JSON.stringify(table.properties),
    created_at: Date.now(),
  });
  if (row === undefined) throw new Error("an insert returned no row");
  return { ...table, id: row.id };
}

const rename = statement((db, p: { id: number; namespace: string; name: string }) =>
  db
    .updateTable("tables")
    .set(pick(p, "namespace", "name"))
    .where("id", "=", p.id),
);

export async function renameTable(session: Session, id: number, to: Identifier): Promise<void> {
  await session.run(rename, { id, ...keyOf(to) });
}

const setProperties = statement((db, p: { id: number; properties: string }) =>
  db.updateTable("tables").set({ properties: p.properties }).where("id", "=", p.id),
);

export async function setTableProperties(
  session: Session,
  id: number,
  properties: Readonly<Record<string, string>>,
): Promise<void> {
  await session.run(setProperties, { id, properties: JSON.stringify(properties) });
}

const remove = statement((db, p: { id: number }) => db.deleteFrom("tables").where("id", "=", p.id));

/** Deletes a table with its branches and version records. */
export async function deleteTable(session: Session, id: number): Promise<void> {
  await session.run(remove, { id });
}

/** Selects the versions of the table of the outer query. */
function versionsOf(
  branches: SelectQueryBuilder<Schema & { tables: Schema["tables"] }, "branches" | "tables", object>,
) {
  return branches
    .innerJoin("table_versions", (join) =>
      join
        .onRef("table_versions.table_id", "=", "branches.table_id")
        .onRef("table_versions.branch", "=", "branches.name")
        .onRef("table_versions.generation", "=", "branches.generation"),
    )
    .select("table_versions.version")
    .whereRef("branches.table_id", "=", "tables.id")
    .where("table_versions.held", "=", 0);
}

interface Page {
  readonly limit: number;
  /** Includes tables without a version. */
  readonly includeDeclared: boolean;
}

const listInNamespace = (includeDeclared: boolean) =>
  statement((db, p: { namespace: string; after: string; limit: number }) =>
    db
      .selectFrom("tables")
      .select("name")
      .where("namespace", "=", p.namespace)
      .where("name", ">", p.after)
      .$if(!includeDeclared, (query) =>
        query.where(({ exists, selectFrom }) => exists(versionsOf(selectFrom("branches")))),
      )
      .orderBy("name")
      .limit(p.limit),
  );
const listAllInNamespace = listInNamespace(true);
const listWrittenInNamespace = listInNamespace(false);

/** Lists the names of the tables of a namespace that follow `after`, in order. */
export async function listTables(
  session: Session,
  namespace: Identifier,
  after: string,
  page: Page,
): Promise<string[]> {
  return session.values(page.includeDeclared ? listAllInNamespace : listWrittenInNamespace, {
    namespace: toPath(namespace),
    after,
    limit: page.limit,
  });
}

const listEverywhere = (includeDeclared: boolean) =>
  statement((db, p: { namespace: string; name: string; limit: number }) =>
    db
      .selectFrom("tables")
      .select(["namespace", "name"])
      .where("namespace", "!=", sql.lit(droppedNamespace))
      .where(({ eb, refTuple, tuple }) => eb(refTuple("namespace", "name"), ">", tuple(p.namespace, p.name)))
      .$if(!includeDeclared, (query) =>
        query.where(({ exists, selectFrom }) => exists(versionsOf(selectFrom("branches")))),
      )
      .orderBy("namespace")
      .orderBy("name")
      .limit(p.limit),
  );
const listAllEverywhere = listEverywhere(true);
const listWrittenEverywhere = listEverywhere(false);

/** Lists the identifiers of all tables that follow `after`; `[]` for the first page. */
export async function listAllTables(session: Session, after: Identifier, page: Page): Promise<Identifier[]> {
  const rows = await session.all(page.includeDeclared ? listAllEverywhere : listWrittenEverywhere, {
    ...keyOf(after),
    limit: page.limit,
  });
  return rows.map((row) => [...fromPath(row.namespace), row.name]);
}

const findByLocation = statement((db, p: { location: string }) =>
  db.selectFrom("tables").select("location").where("location", "=", p.location),
);

const findNameByLocation = statement((db, p: { location: string; namespace: string }) =>
  db
    .selectFrom("tables")
    .select(["namespace", "name"])
    .where("location", "=", p.location)
    .where("namespace", "!=", p.namespace),
);

/** Finds the identifier of the table at one of these locations. Dropped tables do not count. */
export async function findTableAt(session: Session, locations: readonly string[]): Promise<Identifier | undefined> {
  for (const location of locations) {
    const row = await session.first(findNameByLocation, { location, namespace: droppedNamespace });
    if (row !== undefined) return [...fromPath(row.namespace), row.name];
  }
  return undefined;
}

const findByLocationBelow = statement((db, p: { from: string; to: string }) =>
  db.selectFrom("tables").select("location").where("location", ">=", p.from).where("location", "<", p.to).limit(1),
);

/**
 * Reports whether a table, or a dropped table whose objects still exist, is at one of these locations or below the
 * first one.
 */
export async function isLocationTaken(
  session: Session,
  location: string,
  ancestors: readonly string[],
): Promise<boolean> {
  for (const each of [location, ...ancestors])
    if ((await session.first(findByLocation, { location: each })) !== undefined) return true;
  return (await session.first(findByLocationBelow, { from: `${location}/`, to: `${location}0` })) !== undefined;
}

function keyOf(identifier: Identifier): { readonly namespace: string; readonly name: string } {
  return { namespace: toPath(identifier.slice(0, -1)), name: identifier.at(-1) ?? "" };
}
