import { deleteExpiredRecords } from "../store/audit.ts";
import { deleteExpiredJobs } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";

/** How many records one step deletes: it takes some milliseconds. */
const stepRows = 1_000;

/**
 * Deletes the oldest audit records and jobs whose retention is over, as many as one database transaction may, so
 * that other writers wait briefly. Open ones are kept.
 *
 * @returns How many were deleted; when there are none, it is done for now.
 */
export async function deleteExpiredTransactions(store: Store, retentionMs: number): Promise<number> {
  const beforeMillis = Date.now() - retentionMs;
  return store.write(async (session) => {
    const records = await deleteExpiredRecords(session, beforeMillis, stepRows);
    return records + (await deleteExpiredJobs(session, beforeMillis, stepRows));
  });
}
