import { isLive } from "./api-keys.ts";
import type { Session } from "./store.ts";

/** A principal with the numbers of its keys and grants. */
export interface PrincipalSummary {
  readonly principal: string;
  readonly apiKeys: number;
  readonly grants: number;
}

/** Lists the principals whose names follow `after`, in the order of their names. */
export async function listPrincipals({ db }: Session, after: string, limit: number): Promise<PrincipalSummary[]> {
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
