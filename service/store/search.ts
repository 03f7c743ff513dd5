import type { Identifier } from "@tiltyard/protocol";
import { type SqlBool, sql } from "kysely";
import { droppedNamespace, fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A search by name in a namespace and its descendants. */
export interface Search {
  readonly within: Identifier;
  /** A part of a name; or the last parts of a namespace and the beginning of a name in it. */
  readonly parts: readonly string[];
  readonly limit: number;
}

interface Parameters extends Subtree {
  readonly outer: string;
  readonly inner: string;
  readonly name: string;
  readonly prefix: string;
  readonly limit: number;
  readonly dropped: string;
}

const matches = (column: string, pattern: string) => sql<SqlBool>`lower(${sql.ref(column)}) like ${pattern} escape '!'`;

/** Orders names that are equal to the query before those that begin with it, and those before all others. */
const rank = ({ name, prefix }: Parameters) =>
  sql<number>`case when lower(name) = ${name} then 0 when lower(name) like ${prefix} escape '!' then 1 else 2 end`;

// The statements read only columns of an index: a scan of 100,000 names takes some 100 ms.
const tables = statement((db, p: Parameters) =>
  db
    .selectFrom("tables")
    .select(["namespace", "name"])
    .where(isWithin("namespace", p))
    .where("namespace", "!=", p.dropped)
    .where(matches("namespace", p.outer))
    .where(matches("name", p.inner))
    .orderBy(rank(p))
    .orderBy("name")
    .orderBy("namespace")
    .limit(p.limit),
);

const namespaces = statement((db, p: Parameters) =>
  db
    .selectFrom("namespaces")
    .select(["parent", "name"])
    .where(isWithin("parent", p))
    .where(matches("parent", p.outer))
    .where(matches("name", p.inner))
    .orderBy(rank(p))
    .orderBy("name")
    .orderBy("parent")
    .limit(p.limit),
);

/** Finds tables by name, best matches first. */
export async function searchTables(session: Session, search: Search): Promise<Identifier[]> {
  const rows = await session.all(tables, parametersOf(search));
  return rows.map(({ namespace, name }) => [...fromPath(namespace), name]);
}

/** Finds namespaces by name, best matches first. */
export async function searchNamespaces(session: Session, search: Search): Promise<Identifier[]> {
  const rows = await session.all(namespaces, parametersOf(search));
  return rows.map(({ parent, name }) => [...fromPath(parent ?? ""), name]);
}

function parametersOf({ within, parts, limit }: Search): Parameters {
  const outer = lower(toPath(parts.slice(0, -1)));
  const name = lower(parts.at(-1) ?? "");
  const prefix = `${literal(name)}%`;
  return {
    ...subtree(within),
    outer: `%${literal(outer)}`,
    inner: outer === "" ? `%${prefix}` : prefix,
    name,
    prefix,
    limit,
    dropped: droppedNamespace,
  };
}

/** Returns a text with ASCII letters in lower case. Databases differ in the lower case of other letters. */
export function lower(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Returns the pattern of LIKE, with `!` as escape character, that matches a text only. */
export function literal(text: string): string {
  return text.replaceAll(/[%_!]/g, "!$&");
}
