import { hasKind } from "@tiltyard/protocol";
import { type AutomationDeps, openDueJobs } from "./automation/open-due-jobs.ts";
import { adoptRest } from "./commits/adopt.ts";
import type { Config } from "./config.ts";
import { endGenevaRecord } from "./geneva/job-record.ts";
import { createColumnRecorder } from "./rows/record-columns.ts";
import { deleteExpiredRecords } from "./store/audit.ts";
import { expiryOf, noteTime } from "./store/clock.ts";
import { listUnreadTables } from "./store/columns.ts";
import { listDroppedTables } from "./store/dropped-tables.ts";
import { deleteExpiredJobs } from "./store/jobs.ts";
import type { Store } from "./store/store.ts";
import { delayTask, hastenTasks, insertTask } from "./store/tasks.ts";
import { forgetRecords, purgeOf, purgeTable } from "./tables/drop.ts";
import { createWorker, type Worker } from "./tasks/worker.ts";

/** The interval between searches for versions that a process recorded but did not finish. */
const searchEveryMs = 60_000;
const retainEveryMs = 3_600_000;
/** The maximum delay of a task that is no purge. The longest one is that between two deletions of expired records. */
const delayMaxMs = 2 * retainEveryMs;
/** The number of records that one step deletes within some milliseconds. */
const retainStepRows = 1_000;
const hastenedAtOnce = 1_000;

/** Ignores errors that no retry can resolve: Lance's library or the record does not exist. */
function unlessImpossible(error: unknown): undefined {
  if (!hasKind(error, "Unsupported", "TableVersionNotFound")) throw error;
  return undefined;
}

/**
 * Deletes the oldest expired audit records and jobs, in one database transaction of limited size, so that other writers
 * wait only briefly. Open ones are retained.
 *
 * @returns The number of deleted records; 0 if none has expired.
 */
export async function deleteExpiredTransactions(store: Store, retentionMs: number): Promise<number> {
  return store.write(async (session) => {
    await noteTime(session);
    const beforeMillis = await expiryOf(session, retentionMs);
    const records = await deleteExpiredRecords(session, beforeMillis, retainStepRows);
    return records + (await deleteExpiredJobs(session, beforeMillis, retainStepRows));
  });
}

export function createDeferredWork(
  deps: AutomationDeps & Pick<Config, "auditRetentionMs" | "dropRetentionMs" | "isolatedNamespaces">,
): Worker {
  const { store, finishing, log, auditRetentionMs, dropRetentionMs } = deps;
  const recordColumns = createColumnRecorder(deps);
  const worker = createWorker({
    store,
    log,
    handlers: {
      finish: finishing.finishTransaction,
      adopt: (subject) => adoptRest(deps, subject),
      end_record: (subject) => endGenevaRecord(deps, subject).catch(unlessImpossible),
      automate: (subject) => openDueJobs(deps, subject).catch(unlessImpossible),
      purge: (subject, lease) => purgeTable(deps, subject, lease),
      forget: (subject, lease) => forgetRecords(store, Number(subject), lease),
      record_columns: (_, lease) => recordColumns(lease.requireValid),
      retain: async (_, lease) => {
        do lease.requireValid();
        while ((await deleteExpiredTransactions(store, auditRetentionMs)) > 0);
        return retainEveryMs;
      },
    },
  });

  /** A shortened retention also applies to tables that were dropped before. */
  const hastenPurges = async () => {
    await store.write(noteTime);
    const untilMillis = await expiryOf(store.read, dropRetentionMs);
    for (const { id } of await listDroppedTables(store.read, { untilMillis, limit: hastenedAtOnce }))
      await store.write((session) => delayTask(session, purgeOf(id), 0));
  };
  const search = async (recordedUntilMillis: number) => {
    try {
      await finishing.findForgotten(recordedUntilMillis);
      await hastenPurges();
      const hasUnread = (await listUnreadTables(store.read, 0, 1)).length > 0;
      await store.write(async (session) => {
        await hastenTasks(session, delayMaxMs);
        await insertTask(session, { kind: "retain", subject: "transactions" });
        if (hasUnread) await insertTask(session, { kind: "record_columns", subject: "tables" });
      });
      worker.wake();
    } catch (error) {
      log.warn({ err: error }, "the search for unfinished work failed");
    }
  };
  let searching = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;

  return {
    start: () => {
      searching = search(store.read.time());
      timer = setInterval(() => {
        searching = searching.then(() => search(store.read.time() - searchEveryMs));
      }, searchEveryMs);
      worker.start();
    },
    wake: worker.wake,
    drain: async () => {
      await searching;
      await worker.drain();
    },
    stop: async () => {
      clearInterval(timer);
      await searching;
      await worker.stop();
    },
  };
}
