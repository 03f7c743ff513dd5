import { deleteExpiredRecords } from "../store/audit.ts";
import { deleteExpiredJobs } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";

/** The number of records that one step deletes within some milliseconds. */
const stepRows = 1_000;

/**
 * Deletes the oldest expired audit records and jobs, in one database transaction of limited size, so that other writers
 * wait only briefly. Open ones are retained.
 *
 * @returns The number of deleted records; 0 if none has expired.
 */
export async function deleteExpiredTransactions(store: Store, retentionMs: number): Promise<number> {
  const beforeMillis = Date.now() - retentionMs;
  return store.write(async (session) => {
    const records = await deleteExpiredRecords(session, beforeMillis, stepRows);
    return records + (await deleteExpiredJobs(session, beforeMillis, stepRows));
  });
}
