import { type SqlBool, sql } from "kysely";
import type { Session } from "./store.ts";

/** The duration of a lease, measured by the clock of the database. */
export const leaseMs = 60_000;
/** The end of a lease beyond which the clock was set back since its renewal. */
const plausibleMs = 2 * leaseMs;

/** Selects expired leases by their end. Otherwise a lease from before the clock was set back would last until then. */
export function isExpired({ now }: Session, end: "leases.heldUntil" | "tasks.claimedUntil") {
  return sql<SqlBool>`(${sql.ref(end)} <= ${now} or ${sql.ref(end)} > ${now} + ${sql.lit(plausibleMs)})`;
}

/** Acquires a free lease or renews the lease of its holder. @returns Whether the holder has the lease. */
export async function acquireLease(session: Session, name: string, holder: string): Promise<boolean> {
  const { db, now } = session;
  const { numInsertedOrUpdatedRows = 0 } = await db
    .insertInto("leases")
    .values((eb) => ({ name, holder, heldUntil: eb(now, "+", leaseMs) }))
    .onConflict((conflict) =>
      conflict
        .column("name")
        .doUpdateSet((eb) => ({ holder, heldUntil: eb.ref("excluded.heldUntil") }))
        .where((eb) => eb.or([isExpired(session, "leases.heldUntil"), eb("leases.holder", "=", holder)])),
    )
    .executeTakeFirst();
  return numInsertedOrUpdatedRows > 0;
}

export async function releaseLease({ db }: Session, name: string, holder: string): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", name).where("holder", "=", holder).execute();
}
