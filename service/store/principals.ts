import { isLive } from "./api-keys.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** A principal with the numbers of its keys and grants. */
export interface PrincipalSummary {
  readonly principal: string;
  readonly apiKeys: number;
  readonly grants: number;
}

const listNames = statement((db, p: { after: string; limit: number }) =>
  db
    .selectFrom(
      db
        .selectFrom("api_keys")
        .select("principal")
        .where(isLive)
        .union(db.selectFrom("grants").select("principal"))
        .as("named"),
    )
    .select(({ selectFrom, fn }) => [
      "principal",
      selectFrom("api_keys")
        .select(fn.countAll<number>().as("n"))
        .whereRef("principal", "=", "named.principal")
        .where(isLive)
        .as("keys"),
      selectFrom("grants")
        .select(fn.countAll<number>().as("n"))
        .whereRef("principal", "=", "named.principal")
        .as("roles"),
    ])
    .where("principal", ">", p.after)
    .orderBy("principal")
    .limit(p.limit),
);

/** Lists the principals whose names follow `after`, in the order of their names. */
export async function listPrincipals(session: Session, after: string, limit: number): Promise<PrincipalSummary[]> {
  const rows = await session.all(listNames, { after, limit });
  return rows.map((row) => ({ principal: row.principal, apiKeys: Number(row.keys), grants: Number(row.roles) }));
}
