import type { Session } from "./store.ts";

/** Acquires a free lease or renews the lease of its holder. @returns Whether the holder has the lease. */
export async function acquireLease(
  { db, now }: Session,
  name: string,
  holder: string,
  leaseMs: number,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0 } = await db
    .insertInto("leases")
    .values((eb) => ({ name, holder, heldUntil: eb(now, "+", leaseMs) }))
    .onConflict((conflict) =>
      conflict
        .column("name")
        .doUpdateSet((eb) => ({ holder, heldUntil: eb.ref("excluded.heldUntil") }))
        .where((eb) => eb.or([eb("leases.heldUntil", "<=", now), eb("leases.holder", "=", holder)])),
    )
    .executeTakeFirst();
  return numInsertedOrUpdatedRows > 0;
}

export async function releaseLease({ db }: Session, name: string, holder: string): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", name).where("holder", "=", holder).execute();
}
