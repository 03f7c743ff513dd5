import type { Identifier, Role, RoleOfJob } from "@tiltyard/protocol";
import { sql } from "kysely";
import { anyPrincipal, everything, type Page } from "./page.ts";
import { fromPath, isWithin, type Subtree, subtree, toPath } from "./path.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A role on a namespace and everything below it. */
export interface Grant {
  readonly namespace: Identifier;
  readonly role: Role;
}

/** A right of the key of a job. These rights are not stored. */
export interface JobGrant {
  readonly namespace: Identifier;
  readonly role: Role | RoleOfJob;
  /** The job whose records a committer may change. */
  readonly job?: Identifier;
}

const upsertGrant = statement((db, p: { principal: string; namespace: string; role: string }) =>
  db
    .insertInto("grants")
    .values(pick(p, "principal", "namespace", "role"))
    .onConflict((conflict) =>
      conflict.columns(["principal", "namespace"]).doUpdateSet((eb) => ({ role: eb.ref("excluded.role") })),
    ),
);

/** Grants a principal a role on a namespace. Replaces its former role there. */
export async function putGrant(session: Session, principal: string, grant: Grant): Promise<void> {
  await session.run(upsertGrant, { principal, namespace: toPath(grant.namespace), role: grant.role });
}

const removeGrant = statement((db, p: { principal: string; namespace: string }) =>
  db.deleteFrom("grants").where("principal", "=", p.principal).where("namespace", "=", p.namespace),
);

/** Revokes a grant. @returns Whether the grant existed. */
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

const listWithin = statement((db, p: Subtree & { principal: string; after: string; behind: string; limit: number }) =>
  db
    .selectFrom("grants")
    .select(["principal", "namespace", "role"])
    .where(isWithin("namespace", p))
    .where(({ eb, val }) =>
      eb.or([eb(val(p.principal), "=", sql.lit(anyPrincipal)), eb("principal", "=", p.principal)]),
    )
    .where(({ eb, refTuple, tuple }) => eb(refTuple("principal", "namespace"), ">", tuple(p.after, p.behind)))
    .orderBy("principal")
    .orderBy("namespace")
    .limit(p.limit),
);

export interface PrincipalGrant extends Grant {
  readonly principal: string;
}

/** Lists the grants of a principal, or of all principals, on a namespace and below it, in the order of principals. */
export async function listGrants(
  session: Session,
  within: Identifier = [],
  principal: string = anyPrincipal,
  { after, limit }: Page<Pick<PrincipalGrant, "principal" | "namespace">> = everything,
): Promise<PrincipalGrant[]> {
  const rows = await session.all(listWithin, {
    ...subtree(within),
    principal,
    after: after?.principal ?? "",
    behind: toPath(after?.namespace ?? []),
    limit,
  });
  return rows.map((row) => ({
    principal: row.principal,
    namespace: fromPath(row.namespace),
    role: row.role as Role,
  }));
}
