import type { Identifier, Role } from "@tiltyard/protocol";
import { fromPath, toPath } from "./path.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A role on a namespace and all that is under it. */
export interface Grant {
  readonly namespace: Identifier;
  readonly role: Role;
}

export interface ApiKeyRecord {
  readonly id: string;
  readonly principal: string;
  readonly createdAtMillis: number;
}

const upsertKey = statement((db, p: { id: string; principal: string; hash: string; created_at: number }) =>
  db
    .insertInto("api_keys")
    .values({ id: p.id, principal: p.principal, hash: p.hash, created_at: p.created_at })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet((eb) => ({
        principal: eb.ref("excluded.principal"),
        hash: eb.ref("excluded.hash"),
      })),
    ),
);

/** Stores the hash of an API key; a key of this id is replaced. */
export async function putApiKey(session: Session, id: string, principal: string, hash: string): Promise<void> {
  await session.run(upsertKey, { id, principal, hash, created_at: Date.now() });
}

const findKey = statement((db, p: { hash: string }) =>
  db.selectFrom("api_keys").select("principal").where("hash", "=", p.hash),
);

/** The principal whom the key with this hash belongs to. */
export async function findApiKeyPrincipal(session: Session, hash: string): Promise<string | undefined> {
  return (await session.first(findKey, { hash }))?.principal;
}

const removeKey = statement((db, p: { id: string }) => db.deleteFrom("api_keys").where("id", "=", p.id));

/** @returns Whether there was such a key. */
export async function deleteApiKey(session: Session, id: string): Promise<boolean> {
  return (await session.run(removeKey, { id })) > 0;
}

const listKeys = statement((db, _: object) =>
  db.selectFrom("api_keys").select(["id", "principal", "created_at"]).orderBy("created_at").orderBy("id"),
);

export async function listApiKeys(session: Session): Promise<ApiKeyRecord[]> {
  const rows = await session.all(listKeys, {});
  return rows.map((row) => ({ id: row.id, principal: row.principal, createdAtMillis: row.created_at }));
}

const upsertGrant = statement((db, p: { principal: string; namespace: string; role: string }) =>
  db
    .insertInto("grants")
    .values({ principal: p.principal, namespace: p.namespace, role: p.role })
    .onConflict((conflict) =>
      conflict.columns(["principal", "namespace"]).doUpdateSet((eb) => ({ role: eb.ref("excluded.role") })),
    ),
);

/** Gives a principal a role on a namespace, in place of the one that it had there. */
export async function putGrant(session: Session, principal: string, grant: Grant): Promise<void> {
  await session.run(upsertGrant, { principal, namespace: toPath(grant.namespace), role: grant.role });
}

const removeGrant = statement((db, p: { principal: string; namespace: string }) =>
  db.deleteFrom("grants").where("principal", "=", p.principal).where("namespace", "=", p.namespace),
);

/** @returns Whether the principal had a role on the namespace. */
export async function deleteGrant(session: Session, principal: string, namespace: Identifier): Promise<boolean> {
  return (await session.run(removeGrant, { principal, namespace: toPath(namespace) })) > 0;
}

const listOf = statement((db, p: { principal: string }) =>
  db.selectFrom("grants").select(["namespace", "role"]).where("principal", "=", p.principal),
);

export async function listGrantsOf(session: Session, principal: string): Promise<Grant[]> {
  const rows = await session.all(listOf, { principal });
  return rows.map((row) => ({ namespace: fromPath(row.namespace), role: row.role as Role }));
}

const listAll = statement((db, _: object) =>
  db.selectFrom("grants").select(["principal", "namespace", "role"]).orderBy("principal").orderBy("namespace"),
);

export async function listGrants(session: Session): Promise<(Grant & { readonly principal: string })[]> {
  const rows = await session.all(listAll, {});
  return rows.map((row) => ({
    principal: row.principal,
    namespace: fromPath(row.namespace),
    role: row.role as Role,
  }));
}
