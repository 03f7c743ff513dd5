import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

const acquire = statement((db, p: { name: string; holder: string; lease: number }, { now }) =>
  db
    .insertInto("leases")
    .values((eb) => ({ name: p.name, holder: p.holder, held_until: eb(now, "+", p.lease) }))
    .onConflict((conflict) =>
      conflict
        .column("name")
        .doUpdateSet((eb) => ({ holder: eb.ref("excluded.holder"), held_until: eb.ref("excluded.held_until") }))
        .where((eb) => eb.or([eb("leases.held_until", "<=", now), eb("leases.holder", "=", p.holder)])),
    ),
);

/** Acquires a free lease or renews the lease of its holder. @returns Whether the holder has the lease. */
export async function acquireLease(session: Session, name: string, holder: string, leaseMs: number): Promise<boolean> {
  return (await session.run(acquire, { name, holder, lease: leaseMs })) > 0;
}

const release = statement((db, p: { name: string; holder: string }) =>
  db.deleteFrom("leases").where("name", "=", p.name).where("holder", "=", p.holder),
);

export async function releaseLease(session: Session, name: string, holder: string): Promise<void> {
  await session.run(release, { name, holder });
}
