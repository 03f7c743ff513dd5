import type { Session } from "./store.ts";

/** The longest plausible time between two readings. A longer one means a jump of the clock, or a stop. */
const jumpMs = 3_600_000;

/** The age of a reading after which the next one is recorded. Concurrent drops would otherwise conflict. */
const recordedEveryMs = 10_000;

/** Records the current time, and a jump of the clock since the latest reading. A clock that is set back undoes jumps. */
export async function noteTime({ db, time }: Session): Promise<void> {
  const now = time();
  const before = await db.selectFrom("clock").select("seenAtMillis").executeTakeFirst();
  const by = now - (before?.seenAtMillis ?? now);
  if (before !== undefined && Math.abs(by) < recordedEveryMs) return;
  await db
    .insertInto("clock")
    .values({ id: 1, seenAtMillis: now })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ seenAtMillis: now }))
    .execute();
  if (by < 0) await db.deleteFrom("clockJumps").where("toMillis", ">", now).execute();
  if (by > jumpMs)
    await db
      .insertInto("clockJumps")
      .values({ fromMillis: now - by, toMillis: now })
      .execute();
}

/**
 * Returns the time before which everything with a retention has expired. This is the rule for all that is deleted by
 * age: a retention counts only the time in which the catalog ran, so that no jump of the clock ends it. A deletion calls
 * `noteTime` first.
 */
export async function expiryOf({ db, time }: Session, retentionMs: number): Promise<number> {
  let expiry = time() - retentionMs;
  const jumps = await db.selectFrom("clockJumps").selectAll().orderBy("toMillis", "desc").execute();
  for (const { fromMillis, toMillis } of jumps) if (expiry < toMillis) expiry -= toMillis - fromMillis;
  return expiry;
}
