import type { Session } from "./store.ts";

/**
 * The longest plausible time between two readings, which processes do every minute. A longer one means that the clock
 * jumped or that nothing ran.
 */
const jumpMs = 3_600_000;

/** The age of a reading after which the next one is recorded. Concurrent drops would otherwise conflict. */
const recordedEveryMs = 10_000;

/**
 * Records the current time. After a jump of the clock or an outage of the catalog, shifts the times of drops by the
 * same amount: retention counts only the time in which an operator could undrop a table.
 */
export async function noteTime({ db }: Session): Promise<void> {
  const now = Date.now();
  const before = await db.selectFrom("clock").select("seenAtMillis").executeTakeFirst();
  const by = now - (before?.seenAtMillis ?? now);
  if (before !== undefined && Math.abs(by) < recordedEveryMs) return;
  await db
    .insertInto("clock")
    .values({ id: 1, seenAtMillis: now })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ seenAtMillis: now }))
    .execute();
  if (Math.abs(by) > jumpMs)
    await db
      .updateTable("tables")
      .set((eb) => ({ droppedAtMillis: eb("droppedAtMillis", "+", by) }))
      .where("droppedAtMillis", "is not", null)
      .execute();
}
