import type { Identifier } from "@tiltyard/protocol";
import { fromPath, rangeBelow, toPath } from "./path.ts";
import { defineQuery } from "./queries.ts";
import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

export interface NamespaceRecord {
  readonly identifier: Identifier;
  readonly properties: Readonly<Record<string, string>>;
}

const namespacesAt = defineQuery((db, { path }: { readonly path: string }) =>
  db.selectFrom("namespaces").select("properties").where("path", "=", path),
);

export function findNamespace(session: Session, identifier: Identifier): Promise<NamespaceRecord | undefined> {
  const path = toPath(identifier);
  return session.cached(`namespace ${path}`, async () => {
    const [row] = await namespacesAt(session, { path });
    return row && { identifier, ...row };
  });
}

const insertRow = defineQuery((db, row: RecordOf<"namespaces">) => db.insertInto("namespaces").values(row));

/** Inserts a namespace. Its parent must exist, and its name must be free. */
export async function insertNamespace(session: Session, { identifier, properties }: NamespaceRecord): Promise<void> {
  await insertRow(session, {
    path: toPath(identifier),
    parent: toPath(identifier.slice(0, -1)),
    name: identifier.at(-1) ?? "",
    properties,
    createdAtMillis: Date.now(),
  });
}

/** Lists the names of the child namespaces that follow a name, in order. */
export async function listChildNamespaces({ db }: Session, parent: Identifier, after: string, limit: number) {
  const rows = await db
    .selectFrom("namespaces")
    .select("name")
    .where("parent", "=", toPath(parent))
    .where("name", ">", after)
    .orderBy("name")
    .limit(limit)
    .execute();
  return rows.map((row) => row.name);
}

/** Lists the namespaces below one that is not the root. Every namespace precedes its ancestors. */
export async function listNamespacesBelow({ db }: Session, identifier: Identifier, limit: number) {
  const { from, to } = rangeBelow(toPath(identifier));
  const rows = await db
    .selectFrom("namespaces")
    .select("path")
    .where("path", ">=", from)
    .where("path", "<", to)
    .orderBy("path", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => fromPath(row.path));
}

export async function deleteNamespace({ db }: Session, identifier: Identifier): Promise<void> {
  await db.deleteFrom("namespaces").where("path", "=", toPath(identifier)).execute();
}
