import type { Identifier } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";
import { droppedNamespace, fromPath, isWithin, toPath } from "./path.ts";
import type { Session } from "./store.ts";

/** A search by name in a namespace and its descendants. */
export interface Search {
  readonly within: Identifier;
  /** A part of a name; or the last parts of a namespace and the beginning of a name in it. */
  readonly parts: readonly string[];
  readonly limit: number;
}

/** Finds tables by name, best matches first. */
export async function searchTables({ db }: Session, { within, parts, limit }: Search): Promise<Identifier[]> {
  // The query reads only columns of an index: a scan of 100,000 names takes some 100 ms.
  const rows = await db
    .selectFrom("tables")
    .select(["namespace", "name"])
    .where(isWithin("namespace", within))
    .where("namespace", "!=", droppedNamespace)
    .where(matches("namespace", parts))
    .orderBy(rank(parts))
    .orderBy("name")
    .orderBy("namespace")
    .limit(limit)
    .execute();
  return rows.map(({ namespace, name }) => [...fromPath(namespace), name]);
}

/** Finds namespaces by name, best matches first. */
export async function searchNamespaces({ db }: Session, { within, parts, limit }: Search): Promise<Identifier[]> {
  const rows = await db
    .selectFrom("namespaces")
    .select(["parent", "name"])
    .where(isWithin("parent", within))
    .where(matches("parent", parts))
    .orderBy(rank(parts))
    .orderBy("name")
    .orderBy("parent")
    .limit(limit)
    .execute();
  return rows.map(({ parent, name }) => [...fromPath(parent ?? ""), name]);
}

/** Selects the names that match the parts of a search. `parent` is the column with the path of the namespace. */
function matches(parent: string, parts: readonly string[]) {
  const outer = lower(toPath(parts.slice(0, -1)));
  const prefix = `${literal(lower(parts.at(-1) ?? ""))}%`;
  if (outer === "") return sql<SqlBool>`lower(name) like ${`%${prefix}`} escape '!'`;
  return sql<SqlBool>`(lower(${sql.ref(parent)}) like ${`%${literal(outer)}`} escape '!'
    and lower(name) like ${prefix} escape '!')`;
}

/** Orders names that are equal to the query before those that begin with it, and those before all others. */
function rank(parts: readonly string[]) {
  const name = lower(parts.at(-1) ?? "");
  return sql<number>`case when lower(name) = ${name} then 0
    when lower(name) like ${`${literal(name)}%`} escape '!' then 1 else 2 end`;
}

/** Returns a text with ASCII letters in lower case. Databases differ in the lower case of other letters. */
export function lower(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Returns the pattern of LIKE, with `!` as escape character, that matches a text only. */
export function literal(text: string): string {
  return text.replaceAll(/[%_!]/g, "!$&");
}
