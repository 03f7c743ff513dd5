import type { Identifier } from "@tiltyard/protocol";
import { type ExpressionBuilder, type Kysely, type SqlBool, sql } from "kysely";
import { droppedNamespace, fromPath, isWithin, toPath } from "./path.ts";
import { defineQuery } from "./queries.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { versionsOf } from "./versions.ts";

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

const tablesNamed = defineQuery((db, { namespace, name }: ReturnType<typeof nameOf>) =>
  db
    .selectFrom("tables")
    .select(["id", "location", "properties", "isAutomated"])
    .where("namespace", "=", namespace)
    .where("name", "=", name),
);

export async function findTable(session: Session, identifier: Identifier): Promise<TableRecord | undefined> {
  const [row] = await tablesNamed(session, nameOf(identifier));
  return row && { identifier, ...row };
}

/** Returns the table with this id; undefined if it was dropped. */
export async function findTableById({ db }: Session, id: number): Promise<TableRecord | undefined> {
  const row = await selectTables(db).where("id", "=", id).where("namespace", "!=", droppedNamespace).executeTakeFirst();
  return row && toTable(row);
}

/**
 * Lists the tables in a namespace and below it whose properties contain a text as JSON. The text must not contain
 * wildcards of SQL.
 */
export async function listTablesWith({ db }: Session, namespace: Identifier, text: string): Promise<TableRecord[]> {
  const rows = await selectTables(db)
    .where(isWithin("namespace", namespace))
    .where(sql<SqlBool>`properties like ${`%${text}%`}`)
    .execute();
  return rows.map(toTable);
}

function selectTables(db: Kysely<Schema>) {
  return db.selectFrom("tables").select(["id", "namespace", "name", "location", "properties"]);
}

type Row = Pick<RecordOf<"tables">, "id" | "namespace" | "name" | "location" | "properties">;

function toTable({ namespace, name, ...row }: Row): TableRecord {
  return { ...row, identifier: [...fromPath(namespace), name] };
}

const insertRow = defineQuery((db, row: Omit<Row, "id"> & Pick<RecordOf<"tables">, "createdAtMillis">) =>
  db.insertInto("tables").values(row).returning("id"),
);

/** Inserts a table. Its namespace must exist, and its name and its location must be free. */
export async function insertTable(session: Session, table: NewTable): Promise<TableRecord> {
  const { identifier, location, properties } = table;
  const [row] = await insertRow(session, { ...nameOf(identifier), location, properties, createdAtMillis: Date.now() });
  if (row === undefined) throw new Error("the database returned no id");
  return { ...table, id: row.id };
}

export async function renameTable({ db }: Session, id: number, to: Identifier): Promise<void> {
  await db.updateTable("tables").set(nameOf(to)).where("id", "=", id).execute();
}

export async function setTableProperties(
  { db }: Session,
  id: number,
  properties: NewTable["properties"],
): Promise<void> {
  await db.updateTable("tables").set({ properties }).where("id", "=", id).execute();
}

/** Deletes a table with its branches and version records. */
export async function deleteTable({ db }: Session, id: number): Promise<void> {
  await db.deleteFrom("tables").where("id", "=", id).execute();
}

interface Page {
  readonly limit: number;
  /** Includes tables without a version. */
  readonly includeDeclared: boolean;
}

/** Lists the names of the tables of a namespace that follow `after`, in order. */
export async function listTables(
  { db }: Session,
  namespace: Identifier,
  after: string,
  { limit, includeDeclared }: Page,
): Promise<string[]> {
  const rows = await db
    .selectFrom("tables")
    .select("name")
    .where("namespace", "=", toPath(namespace))
    .where("name", ">", after)
    .$if(!includeDeclared, (query) => query.where(hasVersion(db)))
    .orderBy("name")
    .limit(limit)
    .execute();
  return rows.map((row) => row.name);
}

/** Lists the identifiers of all tables that follow `after`; `[]` for the first page. */
export async function listAllTables(
  { db }: Session,
  after: Identifier,
  { limit, includeDeclared }: Page,
): Promise<Identifier[]> {
  const { namespace, name } = nameOf(after);
  const rows = await db
    .selectFrom("tables")
    .select(["namespace", "name"])
    .where("namespace", "!=", droppedNamespace)
    .where(({ eb, refTuple, tuple }) => eb(refTuple("namespace", "name"), ">", tuple(namespace, name)))
    .$if(!includeDeclared, (query) => query.where(hasVersion(db)))
    .orderBy("namespace")
    .orderBy("name")
    .limit(limit)
    .execute();
  return rows.map((row) => [...fromPath(row.namespace), row.name]);
}

/** Selects the tables with a version on any branch. */
function hasVersion(db: Kysely<Schema>) {
  return ({ exists }: ExpressionBuilder<Schema, "tables">) => exists(versionsOf(db, sql.ref("tables.id")));
}

/** Finds the identifier of the table at one of these locations, the longest first. Dropped tables do not count. */
export async function findTableAt({ db }: Session, locations: readonly string[]): Promise<Identifier | undefined> {
  const row = await db
    .selectFrom("tables")
    .select(["namespace", "name"])
    .where("location", "in", locations)
    .where("namespace", "!=", droppedNamespace)
    .orderBy("location", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && [...fromPath(row.namespace), row.name];
}

/**
 * Reports whether a table, or a dropped table whose objects still exist, is at a location, contains it or is below it.
 *
 * @param ancestors The locations that contain the location.
 */
export async function isLocationTaken(
  { db }: Session,
  location: string,
  ancestors: readonly string[],
): Promise<boolean> {
  const tables = db.selectFrom("tables").select("id").limit(1);
  const at = await tables.where("location", "in", [location, ...ancestors]).executeTakeFirst();
  if (at !== undefined) return true;
  const below = tables.where("location", ">=", `${location}/`).where("location", "<", `${location}0`);
  return (await below.executeTakeFirst()) !== undefined;
}

/** Returns the columns of a name. */
export function nameOf(identifier: Identifier): { readonly namespace: string; readonly name: string } {
  return { namespace: toPath(identifier.slice(0, -1)), name: identifier.at(-1) ?? "" };
}
