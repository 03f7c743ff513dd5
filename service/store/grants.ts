import type { Identifier, Role, RoleOfJob } from "@tiltyard/protocol";
import { isLive } from "./api-keys.ts";
import { follows, isWithin, toPath, toRecord } from "./path.ts";
import { defineQuery } from "./queries.ts";
import type { Page, Session } from "./store.ts";

/** A role on a namespace and everything below it. */
export interface Grant {
  readonly namespace: Identifier;
  readonly role: Role;
}

/** A right of the key of a job. These rights are not stored. */
export interface JobGrant {
  readonly namespace: Identifier;
  readonly role: Role | RoleOfJob;
  /** The kind of the one object with this identifier that the right is for; undefined for everything in a namespace. */
  readonly kind?: "table" | "job";
  /** The job whose records a committer may change. */
  readonly job?: Identifier;
}

export async function putGrant({ db }: Session, principal: string, { namespace, role }: Grant): Promise<void> {
  await db
    .insertInto("grants")
    .values({ principal, namespace: toPath(namespace), role })
    .onConflict((conflict) => conflict.columns(["principal", "namespace"]).doUpdateSet({ role }))
    .execute();
}

/** Revokes a grant. @returns Whether the grant existed. */
export async function deleteGrant({ db }: Session, principal: string, namespace: Identifier): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("grants")
    .where((eb) => eb.and({ principal, namespace: toPath(namespace) }))
    .executeTakeFirst();
  return numDeletedRows > 0;
}

const grantsOf = defineQuery((db, { principal }: { readonly principal: string }) =>
  db.selectFrom("grants").select(["namespace", "role"]).where("principal", "=", principal),
);

export async function listGrantsOf(session: Session, principal: string): Promise<readonly Grant[]> {
  return (await grantsOf(session, { principal })).map(toRecord);
}

export interface PrincipalGrant extends Grant {
  readonly principal: string;
}

export async function listGrants(
  { db }: Session,
  within: Identifier,
  principal: string | undefined,
  { after, limit }: Page<Pick<PrincipalGrant, "principal" | "namespace">>,
): Promise<PrincipalGrant[]> {
  const key = after && { principal: after.principal, namespace: toPath(after.namespace) };
  const all = db.selectFrom("grants").select(["principal", "namespace", "role"]);
  let grants = all.where(isWithin("namespace", within)).where(follows(["principal", "namespace"], key));
  if (principal !== undefined) grants = grants.where("principal", "=", principal);
  const rows = await grants.orderBy("principal").orderBy("namespace").limit(limit).execute();
  return rows.map(toRecord);
}

/** Lists the principals whose names follow `after` with the numbers of their keys and grants, in the order of their names. */
export async function listPrincipals({ db }: Session, after: string, limit: number) {
  const named = db
    .selectFrom("apiKeys")
    .select("principal")
    .where(isLive)
    .union(db.selectFrom("grants").select("principal"));
  const rows = await db
    .selectFrom(named.as("named"))
    .select(({ selectFrom, fn }) => [
      "principal",
      selectFrom("apiKeys")
        .select(fn.countAll<number>().as("n"))
        .whereRef("principal", "=", "named.principal")
        .where(isLive)
        .as("keys"),
      selectFrom("grants")
        .select(fn.countAll<number>().as("n"))
        .whereRef("principal", "=", "named.principal")
        .as("roles"),
    ])
    .where("principal", ">", after)
    .orderBy("principal")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ principal: row.principal, apiKeys: Number(row.keys), grants: Number(row.roles) }));
}
