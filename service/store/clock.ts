import { sql } from "kysely";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/**
 * The longest plausible time between two readings, which processes do every minute. A longer one means that the clock
 * jumped or that nothing ran.
 */
const jumpMs = 3_600_000;

const find = statement((db, _: object) => db.selectFrom("clock").select("seen_at"));

const note = statement((db, p: { seen_at: number }) =>
  db
    .insertInto("clock")
    .values({ id: sql.lit(1), seen_at: p.seen_at })
    .onConflict((conflict) => conflict.column("id").doUpdateSet((eb) => ({ seen_at: eb.ref("excluded.seen_at") }))),
);

const shift = statement((db, p: { by: number }) =>
  db
    .updateTable("tables")
    .set((eb) => ({ dropped_at: eb("dropped_at", "+", p.by) }))
    .where("dropped_at", "is not", null),
);

/**
 * Records the current time. After a jump of the clock or an outage of the catalog, shifts the times of drops by the
 * same amount: retention counts only the time in which an operator could undrop a table.
 */
export async function noteTime(session: Session): Promise<void> {
  const now = Date.now();
  const by = now - ((await session.first(find, {}))?.seen_at ?? now);
  await session.run(note, { seen_at: now });
  if (Math.abs(by) > jumpMs) await session.run(shift, { by });
}
