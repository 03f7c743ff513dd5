import { setImmediate } from "node:timers/promises";
import type { Identifier } from "@tiltyard/protocol";
import { type ExpressionBuilder, type RawBuilder, type SqlBool, sql, type Updateable } from "kysely";
import { ancestorUris, type Location, parseLocation } from "../storage/location.ts";
import { boundsBelow, droppedNamespace, follows, fromPath, isWithin, nameOf, toPath } from "./path.ts";
import { defineListQuery, defineQuery } from "./queries.ts";
import { findBaseOwner, updateBases } from "./reserved-locations.ts";
import type { RecordOf, Schema } from "./schema.ts";
import type { Session } from "./store.ts";
import { versionsOf } from "./versions.ts";

export interface NewTable {
  readonly identifier: Identifier;
  readonly location: Location;
  readonly properties: Readonly<Record<string, string>>;
}

export interface TableRecord extends NewTable {
  /** The id, which does not change when the table is renamed. */
  readonly id: number;
  /** Reports whether new rows may open jobs. */
  readonly isAutomated?: boolean;
  readonly isView?: boolean;
}

const tablesNamed = defineQuery((db, { namespace, name }: ReturnType<typeof nameOf>) =>
  db
    .selectFrom("tables")
    .select(["id", "location", "properties", "isAutomated", "isView"])
    .where("namespace", "=", namespace)
    .where("name", "=", name),
);

export function findTable(session: Session, identifier: Identifier): Promise<TableRecord | undefined> {
  return session.cached(`table ${toPath(identifier)}`, async () => {
    const [row] = await tablesNamed(session, nameOf(identifier));
    return row && { ...row, identifier, location: parseLocation(row.location) };
  });
}

/** Returns the table with this id; undefined if it was dropped. */
export async function findTableById({ db }: Session, id: number): Promise<TableRecord | undefined> {
  const found = await db
    .selectFrom("tables")
    .select(["namespace", "name", "location", "properties", "isView"])
    .where("id", "=", id)
    .where("namespace", "!=", droppedNamespace)
    .executeTakeFirst();
  if (found === undefined) return undefined;
  const { namespace, name, location, ...row } = found;
  return { ...row, id, identifier: [...fromPath(namespace), name], location: parseLocation(location) };
}

export async function findProtectedTable({ db }: Session, namespace: Identifier): Promise<Identifier | undefined> {
  const row = await db
    .selectFrom("tables")
    .select(["namespace", "name"])
    // The index contains only these tables, and the planner uses it only for this constant.
    .where(sql<SqlBool>`is_protected = 1`)
    .where(isWithin("namespace", namespace))
    .limit(1)
    .executeTakeFirst();
  return row && [...fromPath(row.namespace), row.name];
}

const insertRow = defineQuery(
  (db, row: Omit<RecordOf<"tables">, "id" | "droppedFrom" | "droppedAtMillis" | "isAutomated" | "isView">) =>
    db.insertInto("tables").values(row).returning("id"),
);

export async function insertTable(session: Session, table: NewTable): Promise<TableRecord> {
  const { identifier, location, properties } = table;
  const columns = {
    ...nameOf(identifier),
    location: location.uri,
    properties,
    isProtected: isProtected(table),
    createdAtMillis: Date.now(),
  };
  const [row] = await insertRow(session, columns);
  if (row === undefined) throw new Error("the database returned no id");
  return { ...table, id: row.id };
}

export async function updateTable({ db }: Session, id: number, changes: Updateable<Schema["tables"]>): Promise<void> {
  await db.updateTable("tables").set(changes).where("id", "=", id).execute();
}

/** Retries concurrent transactions that rename or drop a table, so that they see this one. @returns Whether the table has its name. */
export async function holdTable({ db }: Session, { id, identifier }: Pick<TableRecord, "id" | "identifier">) {
  const { numUpdatedRows } = await db
    .updateTable("tables")
    .set((eb) => ({ name: eb.ref("name") }))
    .where((eb) => eb.and({ id, ...nameOf(identifier) }))
    .executeTakeFirst();
  return numUpdatedRows > 0;
}

/** Renames a table, which may have been dropped and has a name again then. */
export async function renameTable(session: Session, id: number, to: Identifier): Promise<void> {
  await updateTable(session, id, { ...nameOf(to), droppedFrom: null, droppedAtMillis: null });
  await updateBases(session, id, { identifier: to });
}

export async function setTableProperties(session: Session, id: number, properties: NewTable["properties"]) {
  await updateTable(session, id, { properties, isProtected: isProtected({ properties }) });
}

/** The property that protects a table from being dropped while its value is `true`. */
export const protection = "protected";

export function isProtected({ properties }: Pick<NewTable, "properties">): boolean {
  return properties[protection] === "true";
}

export function withProtectionOf(table: Pick<NewTable, "properties">, properties: NewTable["properties"]) {
  return isProtected(table) ? { ...properties, [protection]: "true" } : properties;
}

export async function deleteTable({ db }: Session, id: number): Promise<void> {
  await db.deleteFrom("tables").where("id", "=", id).execute();
}

interface TablePage {
  readonly limit: number;
  readonly includeDeclared: boolean;
}

type Name = ReturnType<typeof nameOf>;

/** Lists the names of the tables of a namespace that follow a name. */
export async function listTables(session: Session, namespace: Identifier, after: string, page: TablePage) {
  const path = toPath(namespace);
  const first = { namespace: path, name: after };
  const rows = await readNames(session, page, first, ({ name }) => sql`namespace = ${path} and name > ${name}`);
  return rows.map(({ name }) => name);
}

/** Lists the identifiers of all tables that follow `after`; `[]` for the first page. */
export async function listAllTables(session: Session, after: Identifier, page: TablePage): Promise<Identifier[]> {
  const rows = await readNames(
    session,
    page,
    nameOf(after),
    (last) => sql`namespace <> ${droppedNamespace} and ${follows(["namespace", "name"], last)}`,
  );
  return rows.map(({ namespace, name }) => [...fromPath(namespace), name]);
}

/** The maximum number of tables whose versions one statement looks up, which takes some milliseconds. */
const lookedUpMax = 2_000;

/** Reads the names of a page of tables, without declared ones in steps. @param following Selects the tables that follow one. */
async function readNames(
  { db }: Session,
  { limit, includeDeclared }: TablePage,
  first: Name,
  following: (after: Name) => RawBuilder<SqlBool>,
): Promise<readonly Name[]> {
  const hasVersion = ({ exists }: ExpressionBuilder<Schema, "tables">) =>
    exists(versionsOf(db, sql.ref("tables.id"))).as("hasVersion");
  const read = (after: Name, most: number) =>
    db
      .selectFrom("tables")
      .select(["namespace", "name"])
      .$if(!includeDeclared, (query) => query.select(hasVersion))
      .where(following(after))
      .orderBy("namespace")
      .orderBy("name")
      .limit(most)
      .execute();
  if (includeDeclared) return read(first, limit);
  const found: Name[] = [];
  for (let [step, after] = [limit, first]; ; step *= 2) {
    const lookedUp = Math.min(step, lookedUpMax);
    const rows = await read(after, lookedUp);
    found.push(...rows.filter((row) => row.hasVersion));
    if (rows.length < lookedUp || found.length >= limit) return found.slice(0, limit);
    after = rows.at(-1) ?? after;
    await setImmediate();
  }
}

/** Finds the table at a location, in a folder that contains it, or with it as a base, unless dropped. */
export async function findOwner(session: Session, location: Location): Promise<Identifier | undefined> {
  const row = await session.db
    .selectFrom("tables")
    .select(["namespace", "name"])
    .where("location", "in", [location.uri, ...ancestorUris(location)])
    .where("namespace", "!=", droppedNamespace)
    .orderBy("location", "desc")
    .limit(1)
    .executeTakeFirst();
  return row ? [...fromPath(row.namespace), row.name] : findBaseOwner(session, location);
}

/** Selects a table at or above a location, or below it. SQLite scans all tables for one condition with `or`. */
const overlapping = defineListQuery((db, [from = "", to = "", ...at]) => {
  const tables = db.selectFrom("tables").select("id");
  const below = tables.where("location", ">=", from).where("location", "<", to);
  return tables.where("location", "in", at).unionAll(below).limit(1);
});

/** Reports whether a table, or a dropped one with objects, is at a location, contains it or is below it. */
export async function isLocationTaken(session: Session, location: Location): Promise<boolean> {
  const { uri } = location;
  return (await overlapping(session, [...boundsBelow(uri), uri, ...ancestorUris(location)])).length > 0;
}
