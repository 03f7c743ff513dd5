import type { Identifier } from "@tiltyard/protocol";
import { fromPath, rangeBelow, toPath } from "./path.ts";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";

export interface NamespaceRecord {
  readonly identifier: Identifier;
  readonly properties: Readonly<Record<string, string>>;
}

const find = statement((db, p: { path: string }) =>
  db.selectFrom("namespaces").select("properties").where("path", "=", p.path),
);

export async function findNamespace(session: Session, identifier: Identifier): Promise<NamespaceRecord | undefined> {
  const row = await session.first(find, { path: toPath(identifier) });
  return row && { identifier, properties: JSON.parse(row.properties) };
}

const insert = statement((db, p: Schema["namespaces"]) =>
  db.insertInto("namespaces").values(pick(p, "path", "parent", "name", "properties", "created_at")),
);

/** Inserts a namespace. Its parent must exist, and its name must be free. */
export async function insertNamespace(session: Session, namespace: NamespaceRecord): Promise<void> {
  await session.run(insert, {
    path: toPath(namespace.identifier),
    parent: toPath(namespace.identifier.slice(0, -1)),
    name: namespace.identifier.at(-1) ?? "",
    properties: JSON.stringify(namespace.properties),
    created_at: Date.now(),
  });
}

const listChildren = statement((db, p: { parent: string; after: string; limit: number }) =>
  db
    .selectFrom("namespaces")
    .select("name")
    .where("parent", "=", p.parent)
    .where("name", ">", p.after)
    .orderBy("name")
    .limit(p.limit),
);

/**
 * Lists the names of the child namespaces in order.
 *
 * @param after The name that the page follows. A namespace with this name need not exist.
 */
export async function listChildNamespaces(
  session: Session,
  parent: Identifier,
  after: string,
  limit: number,
): Promise<string[]> {
  return session.values(listChildren, { parent: toPath(parent), after, limit });
}

const listBelow = statement((db, p: { from: string; to: string; limit: number }) =>
  db
    .selectFrom("namespaces")
    .select("path")
    .where("path", ">=", p.from)
    .where("path", "<", p.to)
    .orderBy("path", "desc")
    .limit(p.limit),
);

/** Lists the namespaces below one that is not the root. Every namespace precedes its ancestors. */
export async function listNamespacesBelow(
  session: Session,
  identifier: Identifier,
  limit: number,
): Promise<Identifier[]> {
  const rows = await session.all(listBelow, { ...rangeBelow(toPath(identifier)), limit });
  return rows.map((row) => fromPath(row.path));
}

const remove = statement((db, p: { path: string }) => db.deleteFrom("namespaces").where("path", "=", p.path));

/** Deletes an empty namespace. */
export async function deleteNamespace(session: Session, identifier: Identifier): Promise<void> {
  await session.run(remove, { path: toPath(identifier) });
}
