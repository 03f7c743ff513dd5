import { afterAll, expect } from "vitest";
import { createFinishing } from "../../service/commits/finish.ts";
import { createDeferredWork } from "../../service/deferred-work.ts";
import { createLog } from "../../service/log.ts";
import { childEnvironment } from "../../service/rows/environment.ts";
import { createRows } from "../../service/rows/rows.ts";
import { createStorage } from "../../service/storage/storage.ts";
import type { TaskKind } from "../../service/store/column-types.ts";
import type { Database } from "../../service/store/database.ts";
import { openStore } from "../../service/store/open.ts";
import type { Session, Store } from "../../service/store/store.ts";
import { listForgottenTransactions } from "../../service/store/unfinished-versions.ts";
import { withOwnClock } from "./own-clock.ts";

/** A delay that exceeds those of retries. */
const longDelayMs = 1_200_000;

export interface DeferredWorkOptions {
  readonly dropRetentionMs?: number;
  readonly autoRefresh?: boolean;
  /** Leaves tasks that the catalog of the test works on to it. Otherwise their end is awaited. */
  readonly leavesClaimed?: boolean;
  /** The maximum number of open jobs of a principal and in a namespace. */
  readonly openJobsMax?: number;
}

/** Runs all deferred work immediately, like another process of the same database when the work is due. */
export async function doDeferredWork(database: Database, options: DeferredWorkOptions = {}): Promise<void> {
  await using other = await openOther(database, options);
  await other.run();
}

/** Returns a function like `doDeferredWork` that keeps the process of the rows library until the end of a file. */
export function useDeferredWork(catalog: { readonly database: Database }): () => Promise<void> {
  let other: ReturnType<typeof openOther> | undefined;
  afterAll(async () => (await other)?.[Symbol.asyncDispose]());
  return async () => {
    other ??= openOther(catalog.database);
    await (await other).run();
  };
}

/** Waits until all versions are recorded as placed, which follows the responses to their commits. */
export async function untilRecorded(store: Store): Promise<void> {
  await expect.poll(() => listForgottenTransactions(store.read, Number.MAX_SAFE_INTEGER, 1)).toEqual([]);
}

/** Opens a database like another process. */
async function openOther(
  database: Database,
  { dropRetentionMs = 0, leavesClaimed = false, openJobsMax = 1_000, autoRefresh = true }: DeferredWorkOptions = {},
) {
  const store = withOwnClock(await openStore(database));
  const storage = createStorage({ s3ForcePathStyle: false });
  const log = createLog("silent");
  const finishing = createFinishing({ store, storage, log });
  const child = { memoryBytes: 2 ** 30, environment: childEnvironment(process.env), log };
  const rows = createRows({ store, storage, finishing }, child);
  const times = { dropRetentionMs, auditRetentionMs: Number.MAX_SAFE_INTEGER, automationDelayMs: 0, autoRefresh };
  const parts = {
    store,
    storage,
    finishing,
    rows,
    log,
    isolatedNamespaces: [],
    rayClusters: [],
    openJobMaxima: { perPrincipal: openJobsMax, perNamespace: openJobsMax },
    ...times,
  };
  return {
    run: async () => {
      const worker = createDeferredWork(parts);
      worker.start();
      // A version may succeed only after another one of its batch. The catalog of the test may claim a task first, and
      // postpones it until its own delay or retention is over.
      const kinds: readonly TaskKind[] = dropRetentionMs === 0 ? ["automate", "purge"] : ["automate"];
      for (let round = 0; round < 2 || (await isPostponed(store, kinds)); round += 1) {
        await store.write(makeDue);
        await worker.drain();
        await finishing.settled();
        if (!leavesClaimed) await expect.poll(() => isClaimed(store)).toBe(false);
      }
      await worker.stop();
    },
    [Symbol.asyncDispose]: async () => {
      await rows[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** Sets the tasks that wait for a retry to be due. A dropped table with a retention period is not one of them. */
async function makeDue({ db }: Session): Promise<void> {
  await db
    .updateTable("tasks")
    .set({ notBefore: 0 })
    .where((eb) => eb.or([eb("kind", "!=", "purge"), eb("attempts", ">", 0)]))
    .execute();
  // The catalog of the test may have claimed tasks that open jobs, and would postpone them.
  await db.updateTable("tasks").set({ claim: null, claimedUntil: 0 }).where("kind", "=", "automate").execute();
}

/** Reports whether a process works on a task. */
async function isClaimed({ read: { db, now } }: Store): Promise<boolean> {
  const claimed = db.selectFrom("tasks").select("kind").where("claimedUntil", ">", now).limit(1);
  return (await claimed.executeTakeFirst()) !== undefined;
}

/** Reports whether a task of these kinds waits for the delay or the retention of the catalog, which has claimed it before. */
async function isPostponed({ read: { db, now } }: Store, kinds: readonly TaskKind[]): Promise<boolean> {
  const postponed = db
    .selectFrom("tasks")
    .select("kind")
    .where("kind", "in", kinds)
    .where("attempts", ">", 0)
    .where((eb) => eb("notBefore", ">", eb(now, "+", longDelayMs)))
    .limit(1);
  return (await postponed.executeTakeFirst()) !== undefined;
}
